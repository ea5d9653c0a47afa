package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Kubectl runs kubectl as the administrator of an instance that this process has started, and returns its standard output. The error
// contains its standard error.
func (i *Instance) Kubectl(ctx context.Context, input string, args ...string) (string, error) {
	path, err := i.Program(ctx, "kubectl")
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, path, append([]string{"--kubeconfig=" + i.Kubeconfig()}, args...)...)
	command.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		// The arguments are last, because one may be a long script.
		err = fmt.Errorf("%s%w: kubectl %s", stderr.String(), err, strings.Join(args, " "))
	}
	return strings.TrimSpace(string(output)), err
}
