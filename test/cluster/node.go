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

// realNodeName is the name of the only node of an instance with a real node.
const realNodeName = "node-0"

// build returns a supply of the programs of an instance. With a real node, it waits until all programs exist.
func (o Options) build(ctx context.Context) (*supply, error) {
	var published *store
	var err error
	if o.Published && !o.Real {
		if published, err = newStore(); err != nil {
			return nil, err
		}
	}
	if !o.Real {
		return startBuild(ctx, o.Progress, published, binaryModules()...)
	}
	if err := RequireNode(ctx, o.Progress); err != nil {
		return nil, err
	}
	programs, err := startBuild(ctx, o.Progress, nil, append(binaryModules(), nodeModules()...)...)
	if err != nil {
		return nil, err
	}
	if _, err := programs.all(ctx); err != nil {
		return nil, err
	}
	for name, pkg := range map[string]string{RealNode: "./test/node/cmd/realnode", "pause": "./test/node/cmd/pause"} {
		path, err := BuildProgram(ctx, pkg, nil, o.Progress)
		if err != nil {
			return nil, err
		}
		programs.add(name, path)
	}
	return programs, nil
}

// RequireNode calls [node.Require], which ensures that this machine can run a real node, in one process at a time.
func RequireNode(ctx context.Context, progress io.Writer) error {
	unlock, err := lock(ctx, "packages", func() { fmt.Fprintln(progress, "waiting for the installation of packages in another process") })
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

// kubeletProcess returns the name of the process that reports the status of pods.
func (i *Instance) kubeletProcess() string {
	if i.state.Real {
		return RealNode
	}
	return Kwok
}

// nodeSubjects returns the subjects of the certificates of a real node.
func nodeSubjects() []subject {
	return []subject{
		{file: "kubelet", name: "system:node:" + realNodeName, group: "system:nodes"},
		{file: "kubelet-server", name: "system:node:" + realNodeName, hosts: []string{realNodeName, node.Address}},
		{file: "kube-proxy", name: "system:kube-proxy"},
		// Provisions volumes and reads NetworkPolicies.
		{file: "node", name: "testcluster:node", group: adminGroup},
		{file: "apiserver-kubelet", name: "testcluster:apiserver", group: adminGroup},
	}
}

// nodeFlags returns the flags with which the API server connects to a real node and restricts the node to its own objects. A flag with a
// single value replaces an earlier flag; a flag with a list extends it.
func (i *Instance) nodeFlags() []string {
	return []string{
		"--bind-address=0.0.0.0", "--advertise-address=" + node.Address, "--endpoint-reconciler-type=lease",
		"--authorization-mode=Node", "--enable-admission-plugins=NodeRestriction", "--allow-privileged",
		"--kubelet-preferred-address-types=InternalIP", "--kubelet-certificate-authority=" + i.credential("ca.crt"),
		"--kubelet-client-certificate=" + i.credential("apiserver-kubelet.crt"), "--kubelet-client-key=" + i.credential("apiserver-kubelet.key"),
	}
}

// startNode starts a real node, whose network all other processes use. Without a real node, it writes the stages of kwok.
func (i *Instance) startNode(ctx context.Context) error {
	if !i.state.Real {
		return i.writeStages(ctx)
	}
	binaries, err := i.programs.all(ctx)
	if err != nil {
		return err
	}
	settings := node.Settings{Name: realNodeName, Dir: i.dir, Programs: binaries, Ports: i.state.Ports}
	if settings.Images, err = i.Images(); err != nil {
		return err
	}
	if err := packAddons(settings.Images, binaries); err != nil {
		return err
	}
	if err := settings.Write(); err != nil {
		return err
	}
	if err := i.run(ctx, &Process{Name: RealNode, Args: []string{"isolate", i.dir}, Isolated: true}); err != nil {
		return err
	}
	return i.waitFor(ctx, RealNode, i.networkReady)
}

func (i *Instance) networkReady(context.Context) error {
	if !node.NetworkReady(i.dir) {
		return errors.New("the network of the node does not exist yet")
	}
	return nil
}

// Images returns the image store of an instance with a real node. Pods can use an image as soon as it is in the store.
func (i *Instance) Images() (images.Store, error) {
	content, err := ImageContent()
	return images.Store{Content: content, Names: i.file("images")}, err
}

// ImageContent returns the folder with the content of images, which all instances of a user share.
func ImageContent() (string, error) {
	cache, err := CacheDir()
	return filepath.Join(cache, "images"), err
}

func packAddons(store images.Store, binaries Binaries) error {
	for name, program := range map[string]string{node.PauseImage: "pause", node.DNSImage: "coredns"} {
		if err := images.Program(store, binaries[program], "/"+program, name); err != nil {
			return err
		}
	}
	return nil
}

// createNodes creates the objects of fake nodes, or the addons of a real node, which registers itself.
func (i *Instance) createNodes(ctx context.Context) error {
	if !i.state.Real {
		return i.createFakeNodes(ctx, i.options.Nodes)
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

// dnsReady checks that the DNS server of a real node is ready.
func (i *Instance) dnsReady(ctx context.Context) error {
	if !i.state.Real {
		return nil
	}
	client, err := i.clientset()
	if err != nil {
		return err
	}
	deployment, err := client.AppsV1().Deployments("kube-system").Get(ctx, "coredns", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the Deployment of CoreDNS: %w", err)
	}
	if deployment.Status.AvailableReplicas == 0 {
		return errors.New("CoreDNS is not ready")
	}
	return nil
}
