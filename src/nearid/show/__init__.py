"""What people see: one way for the terminal, the page and the notebook."""
