"""Program per role: render, compile, bind; and the check of what was built."""
