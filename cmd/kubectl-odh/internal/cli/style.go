package cli

import (
	"strconv"
	"strings"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/screen"
)

// Style finds out how text should look: colours only on a terminal, and lines of its width. Elsewhere lines are as long as what
// they say, for grep and the like. COLUMNS overrules what the terminal says.
func (o *Options) Style() screen.Style {
	columns, is := o.Terminal()
	if wanted, err := strconv.Atoi(o.environment("COLUMNS")); err == nil && wanted > 0 {
		columns = wanted
	}
	wide := *o.Print.OutputFormat == formatWide
	if wide {
		columns = 0 // lines are as long as it takes, as in kubectl
	}
	return screen.Style{
		Color: is && !o.NoColor && o.environment("NO_COLOR") == "" && o.environment("TERM") != "dumb",
		ASCII: o.ASCII || is && !o.speaksUTF8(),
		Width: columns,
		Wide:  wide,
	}
}

// speaksUTF8 reads the locale as programs in C do: the first variable that is set counts. Where none is set, as in containers
// and on Windows, UTF-8 is what works nearly everywhere.
func (o *Options) speaksUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := o.environment(name); value != "" {
			plain := strings.ReplaceAll(strings.ToLower(value), "-", "")
			return strings.Contains(plain, "utf8")
		}
	}
	return true
}

// environment returns the value of a variable, empty when it is not set.
func (o *Options) environment(name string) string {
	value, _ := o.Lookup(name)
	return value
}
