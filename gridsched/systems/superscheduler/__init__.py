"""Superschedulers (Shan, Oliker and Biswas 2003): sender-, receiver- and symmetrically-initiated, central."""
