package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/test/node"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

// realNodeName is that of the only node of an instance whose pods run.
const realNodeName = "node-0"

// build makes sure that all programs exist that the instance needs.
func (o Options) build(ctx context.Context) (Binaries, error) {
	modules := binaryModules()
	if o.Real {
		if err := RequireNode(ctx, o.Progress); err != nil {
			return nil, err
		}
		modules = append(modules, nodeModules()...)
	}
	binaries, err := buildAll(ctx, o.Progress, modules...)
	if err != nil || !o.Real {
		return binaries, err
	}
	for name, pkg := range map[string]string{RealNode: "./test/node/cmd/realnode", "pause": "./test/node/cmd/pause"} {
		if binaries[name], err = BuildProgram(ctx, pkg, nil, o.Progress); err != nil {
			return nil, err
		}
	}
	return binaries, nil
}

// RequireNode makes sure that this machine can run a real node, as [node.Require] does, in one process at a time.
func RequireNode(ctx context.Context, progress io.Writer) error {
	unlock, err := lock(ctx, "packages", func() { fmt.Fprintln(progress, "another process is installing packages, waiting for it") })
	if err != nil {
		return err
	}
	defer unlock()
	return node.Require(ctx, progress)
}

func (o Options) describe() string {
	if o.Real {
		return "pods run on a real node"
	}
	return fmt.Sprintf("%d nodes", o.Nodes)
}

// kubelet is the process that says how pods are.
func (i *Instance) kubelet() string {
	if i.state.Real {
		return RealNode
	}
	return Kwok
}

// nodeSubjects are the certificates of a real node.
func nodeSubjects() []subject {
	return []subject{
		{file: "kubelet", name: "system:node:" + realNodeName, group: "system:nodes"},
		{file: "kubelet-server", name: "system:node:" + realNodeName, hosts: []string{realNodeName, node.Address}},
		{file: "kube-proxy", name: "system:kube-proxy"},
		// Makes volumes and reads network policies.
		{file: "node", name: "testcluster:node", group: masters},
		{file: "apiserver-kubelet", name: "testcluster:apiserver", group: masters},
	}
}

// nodeFlags let the API server talk to a real node and keep that to its own objects. What can be there once replaces the value
// of an earlier flag; a list grows.
func (i *Instance) nodeFlags() []string {
	return []string{
		"--bind-address=0.0.0.0", "--advertise-address=" + node.Address, "--endpoint-reconciler-type=lease",
		"--authorization-mode=Node", "--enable-admission-plugins=NodeRestriction", "--allow-privileged",
		"--kubelet-preferred-address-types=InternalIP", "--kubelet-certificate-authority=" + i.secret("ca.crt"),
		"--kubelet-client-certificate=" + i.secret("apiserver-kubelet.crt"), "--kubelet-client-key=" + i.secret("apiserver-kubelet.key"),
	}
}

// startNode starts what gives the instance its network, before anything else; kwok needs only its stages.
func (i *Instance) startNode(ctx context.Context) error {
	if !i.state.Real {
		return i.writeStages(ctx)
	}
	settings := node.Settings{Name: realNodeName, Dir: i.dir, Programs: i.binaries, Ports: i.state.Ports}
	var err error
	if settings.Images, err = i.Images(); err != nil {
		return err
	}
	if err := i.packAddons(settings.Images); err != nil {
		return err
	}
	if err := settings.Write(); err != nil {
		return err
	}
	if err := i.run(&Process{Name: RealNode, Args: []string{"isolate", i.dir}, Isolated: true}); err != nil {
		return err
	}
	return i.waitFor(ctx, RealNode, i.networkReady)
}

func (i *Instance) networkReady(context.Context) error {
	if !node.NetworkReady(i.dir) {
		return errors.New("its network does not exist yet")
	}
	return nil
}

// Images returns the images that pods of an instance with a real node may name. One that is packed later is found at once.
func (i *Instance) Images() (images.Store, error) {
	content, err := ImageContent()
	return images.Store{Content: content, Names: i.file("images")}, err
}

// ImageContent returns the folder with the content of images, which all instances of a user share.
func ImageContent() (string, error) {
	cache, err := CacheDir()
	return filepath.Join(cache, "images"), err
}

func (i *Instance) packAddons(store images.Store) error {
	for name, program := range map[string]string{node.PauseImage: "pause", node.DNSImage: "coredns"} {
		if err := images.Program(store, i.binaries[program], "/"+program, name); err != nil {
			return err
		}
	}
	return nil
}

// furnishNodes creates what the cluster has from the start, and with it what plays the kubelets.
func (i *Instance) furnishNodes(ctx context.Context, options Options) error {
	if !options.Real {
		if err := i.run(i.kwok()); err != nil {
			return err
		}
		return i.createFakeNodes(ctx, options.Nodes)
	}
	objects, err := node.Addons()
	if err != nil {
		return err
	}
	if _, err := i.Kubectl(ctx, string(objects), "apply", "--server-side", "-f", "-"); err != nil {
		return fmt.Errorf("creating the objects of the cluster: %w", err)
	}
	return nil
}

// namesResolved checks that the DNS server of a real node answers.
func (i *Instance) namesResolved(ctx context.Context) error {
	if !i.state.Real {
		return nil
	}
	client, err := i.clientset()
	if err != nil {
		return err
	}
	deployment, err := client.AppsV1().Deployments("kube-system").Get(ctx, "coredns", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("looking for CoreDNS: %w", err)
	}
	if deployment.Status.AvailableReplicas == 0 {
		return errors.New("CoreDNS is not ready")
	}
	return nil
}
