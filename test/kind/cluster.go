package kind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// Runner runs a program and returns its standard output.
type Runner func(ctx context.Context, name string, args ...string) ([]byte, error)

// Exec returns a Runner that runs real programs and writes their standard error to progress.
func Exec(progress io.Writer) Runner {
	return func(ctx context.Context, name string, args ...string) ([]byte, error) {
		command := exec.CommandContext(ctx, name, args...)
		command.Stderr = progress
		output, err := command.Output()
		if errors.Is(err, exec.ErrNotFound) {
			return nil, fmt.Errorf("%s is not on the PATH: install it, or set its path with KIND=", name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
		}
		return output, nil
	}
}

// Cluster is a kind cluster.
type Cluster struct {
	// Program is the name or the path of kind.
	Program string
	// Name of the cluster.
	Name string
	Run  Runner
}

func (c Cluster) exists(ctx context.Context) (bool, error) {
	output, err := c.Run(ctx, c.Program, "get", "clusters")
	return err == nil && slices.Contains(strings.Fields(string(output)), c.Name), err
}

// Up ensures that the cluster exists and has the image of the manager, if set, and returns its kubeconfig.
func (c Cluster) Up(ctx context.Context, image string) ([]byte, error) {
	found, err := c.exists(ctx)
	if err != nil {
		return nil, err
	}
	if !found {
		if _, err := c.Run(ctx, c.Program, "create", "cluster", "--name", c.Name); err != nil {
			return nil, err
		}
	}
	if image != "" {
		if _, err := c.Run(ctx, c.Program, "load", "docker-image", image, "--name", c.Name); err != nil {
			return nil, fmt.Errorf("the image must exist on this machine, run make docker-build IMG=%s: %w", image, err)
		}
	}
	return c.Run(ctx, c.Program, "get", "kubeconfig", "--name", c.Name)
}

// Down deletes the cluster if it exists.
func (c Cluster) Down(ctx context.Context) error {
	found, err := c.exists(ctx)
	if err != nil || !found {
		return err
	}
	_, err = c.Run(ctx, c.Program, "delete", "cluster", "--name", c.Name)
	return err
}
