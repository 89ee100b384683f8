"""Are these latents the true factors?"""
