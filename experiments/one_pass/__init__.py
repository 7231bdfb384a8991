"""The one-pass model: what its parts gain, samplers beside it, and the text model that ships."""
