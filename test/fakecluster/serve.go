package fakecluster

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ServeHTTP implements http.Handler.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.countActive(1)
	defer c.countActive(-1)
	if r.Method != http.MethodGet && r.Method != http.MethodPatch {
		fail(w, apierrors.NewMethodNotSupported(schema.GroupResource{}, r.Method))
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/api":
		respond(w, &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		respond(w, c.groupList())
	case r.URL.Path == "/version":
		respond(w, map[string]string{"major": "1", "minor": "35", "gitVersion": "v1.35.0"})
	case parts[0] == "api" && len(parts) >= 2:
		c.serveVersion(w, r, schema.GroupVersion{Version: parts[1]}, parts[2:])
	case parts[0] == "apis" && len(parts) >= 3:
		c.serveVersion(w, r, schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:])
	default:
		fail(w, apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path))
	}
}

func (c *Cluster) countActive(delta int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active += delta
	c.maxActive = max(c.maxActive, c.active)
}

func (c *Cluster) groupList() *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, name := range c.groups() {
		group := metav1.APIGroup{Name: name}
		for _, version := range c.versions(name) {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version})
		}
		group.PreferredVersion = group.Versions[0]
		list.Groups = append(list.Groups, group)
	}
	return list
}

// serveVersion serves the paths of a group version.
func (c *Cluster) serveVersion(w http.ResponseWriter, r *http.Request, version schema.GroupVersion, path []string) {
	if len(path) == 0 {
		if c.matches(c.broken, Request{Verb: "discover", Resource: version.String()}) {
			fail(w, apierrors.NewServiceUnavailable("the API service is unavailable"))
			return
		}
		respond(w, c.resources(version))
		return
	}
	request := Request{Verb: "list", Metadata: strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")}
	if path[0] == "namespaces" && len(path) >= 3 {
		request.Namespace, path = path[1], path[2:]
	}
	request.Resource = path[0]
	if len(path) >= 2 {
		request.Verb, request.Name = "get", path[1]
	}
	if r.Method == http.MethodPatch {
		request.Verb = "patch"
	}
	if len(path) == 3 && path[2] == "log" {
		request.Resource, path = "pods/log", path[:2]
	}
	request.Selector = r.URL.Query().Get("labelSelector")
	c.mu.Lock()
	c.requests = append(c.requests, request)
	c.mu.Unlock()
	resource := version.WithResource(request.Resource).GroupResource()
	kind, served := c.kind(version, path[0])
	switch {
	case !served || len(path) > 2:
		fail(w, apierrors.NewNotFound(resource, request.Name))
	case c.matches(c.forbidden, request):
		fail(w, apierrors.NewForbidden(resource, request.Name, nil))
	case c.matches(c.broken, request):
		fail(w, apierrors.NewInternalError(http.ErrAbortHandler))
	case request.Resource == "pods/log":
		c.log(w, r, request)
	case request.Verb == "patch":
		c.patch(w, r, kind, request)
	case request.Verb == "get":
		c.get(w, kind, request)
	default:
		c.list(w, r, kind, request)
	}
}

func (c *Cluster) matches(predicate func(Request) bool, r Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return predicate != nil && predicate(r)
}

func (c *Cluster) get(w http.ResponseWriter, kind Kind, r Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u := c.find(kind, r); u != nil {
		respond(w, u.Object)
		return
	}
	fail(w, apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Resource}, r.Name))
}

func (c *Cluster) find(kind Kind, r Request) *unstructured.Unstructured {
	i := slices.IndexFunc(c.objects, func(u unstructured.Unstructured) bool {
		return u.GroupVersionKind() == kind.GroupVersionKind && u.GetNamespace() == r.Namespace && u.GetName() == r.Name
	})
	if i < 0 {
		return nil
	}
	return &c.objects[i]
}

// patch applies a JSON merge patch.
func (c *Cluster) patch(w http.ResponseWriter, r *http.Request, kind Kind, request Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.find(kind, request)
	if u == nil {
		fail(w, apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Resource}, request.Name))
		return
	}
	mergePatch, err := io.ReadAll(r.Body)
	if err == nil {
		var original, patched []byte
		if original, err = u.MarshalJSON(); err == nil {
			if patched, err = jsonpatch.MergePatch(original, mergePatch); err == nil {
				err = u.UnmarshalJSON(patched)
			}
		}
	}
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	respond(w, u.Object)
}

// log responds with a text that contains the parameters of the request, or with 400 for a container named waiting.
func (c *Cluster) log(w http.ResponseWriter, r *http.Request, request Request) {
	query := r.URL.Query()
	if query.Get("container") == "waiting" {
		fail(w, apierrors.NewBadRequest("container waiting is waiting to start"))
		return
	}
	fmt.Fprintf(w, "log of %s/%s/%s previous=%s tail=%s\npassword=hunter2", request.Namespace, request.Name,
		query.Get("container"), query.Get("previous"), query.Get("tailLines"))
}

func (c *Cluster) list(w http.ResponseWriter, r *http.Request, kind Kind, request Request) {
	query := r.URL.Query()
	selector, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	fieldSelector, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	var found []any
	c.mu.Lock()
	for i := range c.objects {
		u := &c.objects[i]
		name := fields.Set{"metadata.name": u.GetName(), "metadata.namespace": u.GetNamespace()}
		if u.GroupVersionKind() != kind.GroupVersionKind || request.Namespace != "" && u.GetNamespace() != request.Namespace ||
			!selector.Matches(labels.Set(u.GetLabels())) || !fieldSelector.Matches(name) {
			continue
		}
		found = append(found, responseObject(u, request.Metadata))
	}
	c.mu.Unlock()
	start, end, next := c.pageOf(query.Get("continue"), query.Get("limit"), len(found))
	list := map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind + "List", "items": append([]any{}, found[start:end]...),
		"metadata": map[string]any{"resourceVersion": "1", "continue": next},
	}
	if request.Metadata {
		list["apiVersion"], list["kind"] = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	respond(w, list)
}

// responseObject returns an object, or its metadata.
func responseObject(u *unstructured.Unstructured, metadata bool) map[string]any {
	if !metadata {
		return u.Object
	}
	return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": u.Object["metadata"]}
}

// pageOf returns the range of objects of a page, and the continue token of the next page.
func (c *Cluster) pageOf(token, limit string, all int) (start, end int, next string) {
	start, _ = strconv.Atoi(token)
	size, _ := strconv.Atoi(limit)
	c.mu.Lock()
	defer c.mu.Unlock()
	sizes := slices.DeleteFunc([]int{size, c.page, all}, func(n int) bool { return n == 0 })
	if len(sizes) == 0 {
		return 0, 0, ""
	}
	start = min(start, all)
	end = min(start+slices.Min(sizes), all)
	if end < all {
		next = strconv.Itoa(end)
	}
	return start, end, next
}

func respond(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	// The client may have disconnected.
	_ = json.NewEncoder(w).Encode(value)
}

func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}
