"""The word that all begins with which was generated and not measured."""

LABEL = "generated"
