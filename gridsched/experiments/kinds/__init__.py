"""Kinds of study: what each says besides what all that compare schedulers say."""
