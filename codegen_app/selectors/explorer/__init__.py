"""The trials of one problem as its page explores them: those of a node, of a run."""
