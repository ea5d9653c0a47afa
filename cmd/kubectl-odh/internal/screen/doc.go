// Package screen makes text for terminals: colours where they are wanted, tables, and lines that end where the terminal does.
package screen
