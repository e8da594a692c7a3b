"""What must hold of the artefacts: pure rules, and thin asset checks around them."""
