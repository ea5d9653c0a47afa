package screen

// Notes are lines about what could not be found out, for the end of a text.
func (s Style) Notes(notes []string) string {
	text := ""
	for _, note := range notes {
		text += s.Paint(Yellow, s.Clip("Note: "+note, s.Room(0))) + "\n"
	}
	return text
}

// Room is how many columns of a line are left, for Clip: negative when lines have no bound.
func (s Style) Room(used int) int {
	if s.Width == 0 {
		return -1
	}
	return max(s.Width-used, 0)
}
