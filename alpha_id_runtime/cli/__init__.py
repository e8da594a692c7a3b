"""The command line: thin shells that read options, call the package, print. No logic of their own."""
