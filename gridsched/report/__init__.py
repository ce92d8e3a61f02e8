"""The report page: views of studies and templates."""
