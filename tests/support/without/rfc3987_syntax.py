"""In place of a package that only ``make sbom`` needs. jsonschema loads it wherever it lies, which
takes each process that reads a bundle more than a second; an installation for use has none."""

raise ImportError("not in tests")
