"""The lane engine: steps that act and leave files, and judges that are pure functions of those files."""
