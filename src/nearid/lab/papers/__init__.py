"""One room for each paper."""
