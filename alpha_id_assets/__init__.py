"""alpha-id's builder: BfArM's files to published artefacts, by Dagster assets or `alpha-id index build`."""
