package config

import (
	"io/fs"
	"strings"
	"testing"
)

// The flag --config of the CodeFlare and AppWrapper operators took the name of a ConfigMap instead of a file.
func TestConfigFlagWithConfigMapName(t *testing.T) {
	missing := func(path string) ([]byte, error) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	for path, want := range map[string]string{
		"codeflare-operator-config": "leave the flag out",
		"/etc/operator/config.yaml": "check --config and that the file is mounted",
	} {
		if _, err := readFile(path, missing, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", path, err, want)
		}
	}
}
