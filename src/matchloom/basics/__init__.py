"""What every part needs: files, screen, progress, threads, plots and checks of arguments."""
