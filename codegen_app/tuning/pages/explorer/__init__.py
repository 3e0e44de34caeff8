"""The explorer of one problem's trials, for the pages of a node and of a run."""
