"""What all pages share: rendering and the JSON view, tables, forms, the page cache, middleware."""
