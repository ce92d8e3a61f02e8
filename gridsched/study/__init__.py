"""Studies: what the configuration says, which runs follow from it, and the stages that carry them out."""
