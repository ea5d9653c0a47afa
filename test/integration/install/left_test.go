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

// passing lists resources whose objects the control plane creates and deletes on its own.
var passing = []string{"events", "leases", "pods", "replicasets", "endpoints", "endpointslices", "nodes", "csinodes", "controllerrevisions", "componentstatuses"}

// ofEveryNamespace lists objects that the control plane creates in every namespace.
var ofEveryNamespace = []string{"configmaps kube-root-ca.crt", "serviceaccounts default"}

// listObjects lists the stored objects, without those of passing and of ofEveryNamespace.
func listObjects(ctx context.Context) map[string]bool {
	GinkgoHelper()
	finder, err := discovery.NewDiscoveryClientForConfig(env.Config)
	Expect(err).NotTo(HaveOccurred())
	reader, err := metadata.NewForConfig(env.Config)
	Expect(err).NotTo(HaveOccurred())
	// Discovery may still list a deleted resource.
	lists, err := finder.ServerPreferredResources()
	if !discovery.IsGroupDiscoveryFailedError(err) {
		Expect(err).NotTo(HaveOccurred())
	}
	found := map[string]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		Expect(err).NotTo(HaveOccurred())
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || slices.Contains(passing, resource.Name) {
				continue
			}
			objects, err := reader.Resource(version.WithResource(resource.Name)).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			Expect(err).NotTo(HaveOccurred(), resource.Name)
			for _, object := range objects.Items {
				if slices.Contains(ofEveryNamespace, resource.Name+" "+object.Name) {
					continue
				}
				found[strings.TrimPrefix(resource.Name+" "+object.Namespace+"/"+object.Name, " ")] = true
			}
		}
	}
	return found
}

// data matches the objects with data of users: PersistentVolumeClaims, their volumes, and passwords.
var data = regexp.MustCompile("^(persistentvolumeclaims|secrets) opendatahub/(mlflow|modelregistry-sample)|^persistentvolumes /")

// createdObjects returns the objects created since the start of the suite, sorted: those with data of users, and others.
func createdObjects(ctx context.Context) (kept, others []string) {
	GinkgoHelper()
	for name := range listObjects(ctx) {
		switch {
		case before[name]:
		case data.MatchString(name):
			kept = append(kept, name)
		default:
			others = append(others, name)
		}
	}
	slices.Sort(kept)
	slices.Sort(others)
	return kept, others
}

// nothingButData waits until only objects with data of users are left, and returns them.
func nothingButData(ctx context.Context) []string {
	GinkgoHelper()
	var kept []string
	Eventually(func() (others []string) {
		kept, others = createdObjects(ctx)
		return others
	}).WithContext(ctx).Should(BeEmpty())
	return kept
}
