"""How Kiln keeps up with ten million points of fifty thousand series (``python -m`` this)."""
