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

// passing are kinds of which objects come and go by themselves.
var passing = []string{"events", "leases", "pods", "replicasets", "endpoints", "endpointslices", "nodes", "csinodes", "controllerrevisions", "componentstatuses"}

// ofEveryNamespace are objects that the control plane makes, a moment after a namespace.
var ofEveryNamespace = []string{"configmaps kube-root-ca.crt", "serviceaccounts default"}

// everything lists what the cluster stores, but for what comes and goes by itself and what belongs to every namespace.
func everything(ctx context.Context) map[string]bool {
	GinkgoHelper()
	finder, err := discovery.NewDiscoveryClientForConfig(env.Config)
	Expect(err).NotTo(HaveOccurred())
	reader, err := metadata.NewForConfig(env.Config)
	Expect(err).NotTo(HaveOccurred())
	// A kind that has just gone may still be listed: it has no objects.
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

// data is what holds data of users: claims and passwords, and the volumes behind the claims.
var data = regexp.MustCompile("^(persistentvolumeclaims|secrets) opendatahub/(mlflow|modelregistry-sample)|^persistentvolumes /")

// left are the objects that were not there before any installation, in order: those that hold data, and others.
func left(ctx context.Context) (kept, others []string) {
	GinkgoHelper()
	for name := range everything(ctx) {
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

// nothingButData waits until only data is left, and returns that.
func nothingButData(ctx context.Context) []string {
	GinkgoHelper()
	var kept []string
	Eventually(func() (others []string) {
		kept, others = left(ctx)
		return others
	}).WithContext(ctx).Should(BeEmpty())
	return kept
}
