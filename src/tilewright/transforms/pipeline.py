"""The shared pipeline that every back end starts with."""
