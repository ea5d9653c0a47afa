package images

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/odh-platform/odh-platform-operator/test/filelock"
)

// OperatorImage is the image in the overlay for plain Kubernetes.
const OperatorImage = "ghcr.io/odh-platform/odh-platform-operator:unreleased"

// Operator builds the image of the manager from the Dockerfile of the checkout: it builds the binary with the same make target and
// executes the instructions of the last stage. The base is empty instead of distroless.
func Operator(ctx context.Context, s Store, checkout string) error {
	binary := filepath.Join(checkout, "bin", "image", "manager")
	release, err := filelock.Take(ctx, binary+".lock", nil)
	if err != nil {
		return err
	}
	defer release()
	command := exec.CommandContext(ctx, "make", "-s", "manager", "BINARY="+binary)
	command.Dir, command.Env = checkout, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the manager: %w\n%s", err, output)
	}
	dockerfile, err := os.ReadFile(filepath.Join(checkout, "Dockerfile"))
	if err != nil {
		return fmt.Errorf("reading the Dockerfile: %w", err)
	}
	image, err := lastStage(string(dockerfile), checkout, binary)
	if err != nil {
		return err
	}
	return s.Pack(image, OperatorImage)
}

// lastStage returns the image of the last stage, in which --from copies only the binary.
func lastStage(dockerfile, checkout, binary string) (Image, error) {
	image := Image{Files: []File{{Target: "/tmp/", Mode: 0o1777}}}
	scanner := bufio.NewScanner(strings.NewReader(dockerfile))
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 2 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if fields[0] == "FROM" {
			image = Image{Files: image.Files[:1]}
			continue
		}
		if err := image.execute(fields, checkout, binary); err != nil {
			return Image{}, fmt.Errorf("reading the Dockerfile: %s: %w", scanner.Text(), err)
		}
	}
	return image, nil
}

func (i *Image) execute(fields []string, checkout, binary string) error {
	switch fields[0] {
	case "USER":
		i.User = fields[1]
	case "ENTRYPOINT":
		return json.Unmarshal([]byte(strings.Join(fields[1:], " ")), &i.Entrypoint)
	case "COPY":
		file := File{Target: fields[len(fields)-1], Source: filepath.Join(checkout, fields[1]), Mode: 0o644}
		if strings.HasPrefix(fields[1], "--from=") {
			file.Source, file.Mode = binary, 0o755
		}
		i.Files = append(i.Files, file)
	}
	return nil // other instructions set labels or belong to the build stage
}
