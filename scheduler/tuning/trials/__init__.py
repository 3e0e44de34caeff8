"""What many trials of one problem show: which parameters matter, how each of their values does."""
