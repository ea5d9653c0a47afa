package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// StorageClass is the name of the default StorageClass of an instance with fake nodes. Its claims are bound immediately, because the
// volume stages of kwok select this name.
const StorageClass = "kwok-volume"

func (i *Instance) clientset() (kubernetes.Interface, error) {
	config, err := i.Config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return client, nil
}

// createInitialObjects creates the initial objects of a cluster: those of createNodes and the configuration of the platform. It
// returns when the CRDs are served.
func (i *Instance) createInitialObjects(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) error {
	if err := i.createNodes(ctx); err != nil {
		return err
	}
	config, err := i.Config()
	if err != nil {
		return err
	}
	if err := waitCRDs(ctx, config, crds...); err != nil {
		return err
	}
	return configure(ctx, config, i.options.Platform)
}

// createFakeNodes creates fake nodes and their default StorageClass.
func (i *Instance) createFakeNodes(ctx context.Context, count int) error {
	client, err := i.clientset()
	if err != nil {
		return err
	}
	for number := range count {
		node := fakeNode(fmt.Sprintf("node-%d", number))
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating Node %s: %w", node.Name, err)
		}
	}
	if _, err := client.StorageV1().StorageClasses().Create(ctx, storageClass(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating StorageClass %s: %w", StorageClass, err)
	}
	return nil
}

func storageClass() *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        StorageClass,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:          "kwok.x-k8s.io/volume",
		ReclaimPolicy:        new(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode:    new(storagev1.VolumeBindingImmediate),
		AllowVolumeExpansion: new(true),
	}
}

func fakeNode(name string) *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("256"),
		corev1.ResourceMemory:           resource.MustParse("2Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("10Ti"),
		corev1.ResourcePods:             resource.MustParse("2000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
				"node-role.kubernetes.io/worker": "",
			},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: corev1.NodeStatus{Allocatable: resources, Capacity: resources},
	}
}

func (i *Instance) nodesReady(ctx context.Context) error {
	client, err := i.clientset()
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	if len(nodes.Items) == 0 {
		return errors.New("there are no Nodes")
	}
	for _, node := range nodes.Items {
		if len(node.Spec.Taints) > 0 || !nodeReady(node) {
			return fmt.Errorf("the Node %s is not ready", node.Name)
		}
	}
	return nil
}

func nodeReady(node corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// defaultAccountExists checks that the controllers have created the default ServiceAccount and the ConfigMap with the root CA, which pods
// require.
func (i *Instance) defaultAccountExists(ctx context.Context) error {
	client, err := i.clientset()
	if err != nil {
		return err
	}
	_, accountErr := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	_, rootErr := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	if err := errors.Join(accountErr, rootErr); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the default ServiceAccount: %w", err)
	} else if err != nil {
		return errors.New("the default ServiceAccount does not exist yet")
	}
	return nil
}
