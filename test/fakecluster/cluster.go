package fakecluster

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kind is a kind that the cluster serves.
type Kind struct {
	schema.GroupVersionKind
	Resource   string
	Short      []string
	Namespaced bool
}

// Request is a request that the cluster received.
type Request struct {
	Verb                      string // get, list, patch or, for Break, discover
	Resource, Namespace, Name string
	// Metadata is true if only metadata was requested.
	Metadata bool
	Selector string
}

// Cluster is a running fake API server.
type Cluster struct {
	// URL is the address of the server.
	URL string

	kinds   []Kind
	objects []unstructured.Unstructured

	mu        sync.Mutex
	forbidden func(Request) bool
	broken    func(Request) bool
	page      int
	requests  []Request
	active    int
	maxActive int
}

// Start serves kinds and objects until the test ends.
func Start(t testing.TB, kinds []Kind, objects []unstructured.Unstructured) *Cluster {
	t.Helper()
	c := &Cluster{kinds: kinds, objects: objects}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Kubeconfig writes a kubeconfig for a namespace, and returns its path.
func (c *Cluster) Kubeconfig(t testing.TB, namespace string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["fake"] = &clientcmdapi.Cluster{Server: c.URL}
	config.AuthInfos["fake"] = &clientcmdapi.AuthInfo{Token: "fake"}
	config.Contexts["fake"] = &clientcmdapi.Context{Cluster: "fake", AuthInfo: "fake", Namespace: namespace}
	config.CurrentContext = "fake"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Forbid responds to matching requests with 403 from now on.
func (c *Cluster) Forbid(matches func(Request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forbidden = matches
}

// Break responds to matching requests with 500, or 503 for discovery, from now on.
func (c *Cluster) Break(matches func(Request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = matches
}

// Page limits the number of objects of a response, even if the client sets a higher limit or none.
func (c *Cluster) Page(size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.page = size
}

// Requests returns the requests for objects so far.
func (c *Cluster) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

// MaxConcurrentRequests returns the largest number of concurrent requests.
func (c *Cluster) MaxConcurrentRequests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.maxActive
}

// kind returns the kind of a group version and resource.
func (c *Cluster) kind(version schema.GroupVersion, resource string) (Kind, bool) {
	i := slices.IndexFunc(c.kinds, func(k Kind) bool { return k.GroupVersion() == version && k.Resource == resource })
	if i < 0 {
		return Kind{}, false
	}
	return c.kinds[i], true
}

// versions returns the versions of a group in the order of the kinds; the first is preferred.
func (c *Cluster) versions(group string) []schema.GroupVersion {
	var out []schema.GroupVersion
	for _, k := range c.kinds {
		if k.Group == group && !slices.Contains(out, k.GroupVersion()) {
			out = append(out, k.GroupVersion())
		}
	}
	return out
}

// groups returns the names of the API groups other than core.
func (c *Cluster) groups() []string {
	var out []string
	for _, k := range c.kinds {
		if k.Group != "" && !slices.Contains(out, k.Group) {
			out = append(out, k.Group)
		}
	}
	return out
}

func (c *Cluster) resources(version schema.GroupVersion) *metav1.APIResourceList {
	list := &metav1.APIResourceList{GroupVersion: version.String()}
	list.Kind, list.APIVersion = "APIResourceList", "v1"
	for _, k := range c.kinds {
		if k.GroupVersion() != version {
			continue
		}
		list.APIResources = append(list.APIResources,
			metav1.APIResource{
				Name: k.Resource, SingularName: strings.ToLower(k.Kind), Kind: k.Kind, Namespaced: k.Namespaced, ShortNames: k.Short, Verbs: metav1.Verbs{"get", "list"},
			},
			metav1.APIResource{Name: k.Resource + "/status", Kind: k.Kind, Namespaced: k.Namespaced, Verbs: metav1.Verbs{"get"}})
	}
	return list
}
