package install_test

import (
	"context"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// transientResources are resources whose objects the control plane creates and deletes.
var transientResources = []string{"events", "leases", "pods", "replicasets", "endpoints", "endpointslices", "nodes", "csinodes", "controllerrevisions", "componentstatuses"}

// namespaceDefaults are objects that the control plane creates in every namespace.
var namespaceDefaults = []string{"configmaps kube-root-ca.crt", "serviceaccounts default"}

// listObjects lists the stored objects, except transientResources and namespaceDefaults.
func listObjects(ctx context.Context) map[string]bool {
	GinkgoHelper()
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(env.Config)
	Expect(err).NotTo(HaveOccurred())
	metadataClient, err := metadata.NewForConfig(env.Config)
	Expect(err).NotTo(HaveOccurred())
	// Discovery may still list a deleted resource.
	lists, err := discoveryClient.ServerPreferredResources()
	if !discovery.IsGroupDiscoveryFailedError(err) {
		Expect(err).NotTo(HaveOccurred())
	}
	found := map[string]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		Expect(err).NotTo(HaveOccurred())
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || slices.Contains(transientResources, resource.Name) {
				continue
			}
			objects, err := metadataClient.Resource(version.WithResource(resource.Name)).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			Expect(err).NotTo(HaveOccurred(), resource.Name)
			for _, object := range objects.Items {
				if slices.Contains(namespaceDefaults, resource.Name+" "+object.Name) {
					continue
				}
				found[strings.TrimPrefix(resource.Name+" "+object.Namespace+"/"+object.Name, " ")] = true
			}
		}
	}
	return found
}

// userData matches the objects with data of users: PersistentVolumeClaims, their volumes, and passwords.
var userData = regexp.MustCompile("^(persistentvolumeclaims|secrets) opendatahub/(mlflow|modelregistry-sample)|^persistentvolumes /")

// createdObjects returns the objects created since the start of the suite, sorted: objects with data of users, and all others.
func createdObjects(ctx context.Context) (kept, others []string) {
	GinkgoHelper()
	for name := range listObjects(ctx) {
		switch {
		case initialObjects[name]:
		case userData.MatchString(name):
			kept = append(kept, name)
		default:
			others = append(others, name)
		}
	}
	slices.Sort(kept)
	slices.Sort(others)
	return kept, others
}

// waitForUserDataOnly waits until only objects with data of users remain, and returns them.
func waitForUserDataOnly(ctx context.Context) []string {
	GinkgoHelper()
	var kept []string
	Eventually(func() (others []string) {
		kept, others = createdObjects(ctx)
		return others
	}).WithContext(ctx).Should(BeEmpty())
	return kept
}
