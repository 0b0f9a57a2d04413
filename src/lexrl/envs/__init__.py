"""The environments, one file each; adapters for Gymnasium's; and what makes an environment from a name or an object."""
