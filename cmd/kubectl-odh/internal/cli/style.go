package cli

import (
	"strconv"
	"strings"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
)

// style finds out how text should look: colours only on a terminal, and lines of its width. Elsewhere lines are as long as what
// they say, for grep and the like. COLUMNS overrules what the terminal says.
func (p Process) style(o Options) screen.Style {
	columns, is := p.Terminal()
	if wanted, err := strconv.Atoi(p.environment("COLUMNS")); err == nil && wanted > 0 {
		columns = wanted
	}
	return screen.Style{
		Color: is && !o.NoColor && p.environment("NO_COLOR") == "" && p.environment("TERM") != "dumb",
		ASCII: o.ASCII || is && !p.speaksUTF8(),
		Width: columns,
	}
}

// speaksUTF8 reads the locale as programs in C do: the first variable that is set counts. Where none is set, as in containers
// and on Windows, UTF-8 is what works nearly everywhere.
func (p Process) speaksUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := p.environment(name); value != "" {
			plain := strings.ReplaceAll(strings.ToLower(value), "-", "")
			return strings.Contains(plain, "utf8")
		}
	}
	return true
}
