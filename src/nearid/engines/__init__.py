"""Where passes over rows run: this process, several processes, or a Dask cluster."""
