"""The assets: each resolves paths, calls one pure step and reports what it did."""
