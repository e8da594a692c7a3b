"""The sources, read and checked. Pure: bytes in, frames out; no Dagster, no storage."""
