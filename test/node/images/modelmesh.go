package images

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
)

// Images in the settings of the operator, and in the runtimes and the quickstart of ModelMesh.
const (
	ModelMeshImage      = "docker.io/kserve/modelmesh:v0.12.0"
	RuntimeAdapterImage = "docker.io/kserve/modelmesh-runtime-adapter:v0.12.0"
	RESTProxyImage      = "docker.io/kserve/rest-proxy:v0.12.0"
	MLServerImage       = "docker.io/seldonio/mlserver:1.3.2"
	ExampleModelsImage  = "docker.io/kserve/modelmesh-minio-examples:latest"
	EtcdImage           = "quay.io/coreos/etcd:v3.5.4"
	KubectlImage        = "quay.io/openshift/origin-cli:4.19"
)

var (
	// mlserverRequirements is the requirements file of MLServer with all dependencies.
	//
	//go:embed python/mlserver.txt
	mlserverRequirements string
	//go:embed modelmesh/rest_proxy.py
	restProxy string
	//go:embed modelmesh/train.py
	trainModels string
	//go:embed modelmesh/train.sh
	trainScript string
	//go:embed modelmesh/serve-models
	serveModels string
)

// ModelMesh builds the image of the fake routing layer from the binary of test/modelmesh/cmd/mm, which is also its preStop hook.
func ModelMesh(s Store, binary string) error {
	const folder = "/opt/kserve/mmesh/"
	return s.Pack(Image{
		Files:   []File{{Target: folder + "mm", Source: binary, Mode: 0o755}, {Target: folder + "stop.sh", Source: binary, Mode: 0o755}},
		Process: Process{Entrypoint: []string{folder + "mm"}, User: "2000:0"},
	}, ModelMeshImage)
}

// RuntimeAdapter builds the image of the runtime adapter from its binaries, by path in the image.
func RuntimeAdapter(s Store, programs map[string]string) error {
	image := Image{Process: Process{User: "2000:0"}}
	for name, binary := range programs {
		image.Files = append(image.Files, File{Target: name, Source: binary, Mode: 0o755})
	}
	return s.Pack(image, RuntimeAdapterImage)
}

// MLServer builds the images of MLServer and of the REST proxy. MLServer is a later release than the tag that the
// ServingRuntime names, because Debian no longer has the Python of that release. The REST proxy is a fake, because the module of
// kserve/rest-proxy is not published.
func MLServer(ctx context.Context, s Store) error {
	layers, err := s.mlserver(ctx)
	if err != nil {
		return err
	}
	const home = "/opt/mlserver"
	err = s.Pack(Image{
		Layers: layers,
		Files:  []File{{Target: home + "/", Mode: 0o775, UID: 1000}},
		Process: Process{
			User: "1000:0", Env: []string{pythonPath, "HOME=" + home}, WorkingDir: home,
			Cmd: []string{"sh", "-c", `exec mlserver start "$MLSERVER_MODELS_DIR"`},
		},
	}, MLServerImage)
	if err != nil {
		return err
	}
	const program = "/opt/rest-proxy/rest_proxy.py"
	return s.Pack(Image{
		Layers:  layers,
		Files:   []File{{Target: program, Content: restProxy, Mode: 0o644}},
		Process: Process{User: "1001:0", Env: []string{pythonPath, "PYTHONPATH=" + path.Dir(program)}, Cmd: []string{"python3", program}},
	}, RESTProxyImage)
}

func (s Store) mlserver(ctx context.Context) ([]Digest, error) {
	return s.python(ctx, pythonSystem{
		suite: python311, debian: rayPackages, // the system layer of the Ray image, which is cached
		requirements: mlserverRequirements, options: []string{"--no-deps"},
	})
}

// ExampleModels builds the image of the object store versitygw with an example model for MLServer in its bucket.
func ExampleModels(ctx context.Context, s Store, versitygw string) error {
	models, err := s.exampleModels(ctx)
	if err != nil {
		return err
	}
	base, err := s.base(ctx)
	if err != nil {
		return err
	}
	return s.Pack(Image{
		Layers: []Digest{base, models},
		Files: []File{
			{Target: "/usr/bin/versitygw", Source: versitygw, Mode: 0o755}, {Target: "/usr/bin/serve-models", Content: serveModels, Mode: 0o755},
		},
		Process: Process{User: "1001:0", Entrypoint: []string{"serve-models"}},
	}, ExampleModelsImage)
}

// exampleModels returns the layer with the model, which is trained with the packages of MLServer, so MLServer can load it.
func (s Store) exampleModels(ctx context.Context) (Digest, error) {
	system, err := s.mlserver(ctx)
	if err != nil {
		return "", err
	}
	key := trainScript + trainModels
	args := []string{"-c", trainScript, "sh"}
	return s.Layer(ctx, fmt.Sprintln(key, system), func(w io.Writer) error {
		root, err := os.MkdirTemp(s.Content, "root")
		if err != nil {
			return fmt.Errorf("training a model: %w", err)
		}
		defer func() { _ = os.RemoveAll(root) }()
		args = append(args, root)
		for _, layer := range system {
			args = append(args, s.blob(layer))
		}
		command := exec.CommandContext(ctx, "sh", args...)
		var stderr bytes.Buffer
		command.Stdin, command.Stdout, command.Stderr = strings.NewReader(trainModels), w, &stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("training a model: %w\n%s", err, stderr.String())
		}
		return nil
	})
}

// Commands builds an image with the content of BaseImage and additional programs on its PATH.
func Commands(ctx context.Context, s Store, name string, programs ...string) error {
	base, err := s.base(ctx)
	if err != nil {
		return err
	}
	image := Image{Layers: []Digest{base}, Process: Process{User: "1001:0", Cmd: []string{"sh"}}}
	for _, program := range programs {
		image.Files = append(image.Files, File{Target: "/usr/bin/" + path.Base(program), Source: program, Mode: 0o755})
	}
	return s.Pack(image, name)
}
