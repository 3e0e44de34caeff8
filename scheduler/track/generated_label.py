"""The word that begins the name of everything generated, not measured."""

LABEL = "generated"
