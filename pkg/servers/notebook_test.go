package servers_test

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apisserver "github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

// This file contains an example component for a published server: its kind, its description and its phases.

var notebookKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Notebook"}

// Notebook is the custom resource of the server.
type Notebook struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Image    string `json:"image"`
		Replicas *int32 `json:"replicas,omitempty"`
		// TokenSecret is a Secret of the user with the key token, which the server reads at its start.
		TokenSecret string `json:"tokenSecret"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64              `json:"observedGeneration,omitempty"`
		Conditions         []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status"`
}

// DeepCopyObject implements runtime.Object.
func (n *Notebook) DeepCopyObject() runtime.Object {
	out := *n
	n.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = slices.Clone(n.Status.Conditions)
	return &out
}

// NotebookList is a list of Notebooks.
type NotebookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Notebook `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *NotebookList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = slices.Clone(l.Items)
	return &out
}

// ConditionsRef implements reconciler.Object.
func (n *Notebook) ConditionsRef() *[]metav1.Condition { return &n.Status.Conditions }

// ObserveGeneration implements reconciler.Object.
func (n *Notebook) ObserveGeneration() { n.Status.ObservedGeneration = n.Generation }

func (n *Notebook) certificate() string { return n.Name + "-tls" }

func (n *Notebook) describe() *servers.Description {
	labels := map[string]string{"app": n.Name}
	return &servers.Description{
		Name: n.Name, Namespace: n.Namespace, Labels: func(string) map[string]string { return maps.Clone(labels) }, Selector: labels,
		Port: 8443, PortName: "https", TLS: true,
	}
}

// build returns the desired objects. Apply orders them by Stage.
func (n *Notebook) build(in *servers.Publishing, rollout reference.RolloutHash) (apply.Desired, error) {
	d := n.describe()
	proxy := d.ProxyObjects()
	file := func(key string) rbacproxy.File {
		return rbacproxy.File{Secret: n.certificate(), Key: key, Volume: "tls", Dir: "/etc/tls"}
	}
	sidecar := &rbacproxy.Sidecar{
		Image: "proxy:1", Port: d.Port, UpstreamPort: 8888, HealthPort: 8081, ConfigMap: n.Name + "-kube-rbac-proxy-config", Certificate: file("tls.crt"), Key: file("tls.key"),
	}
	pod := corev1ac.PodSpec().WithSecurityContext(resources.PodSecurity().WithFSGroup(1000)).WithContainers(corev1ac.Container().
		WithName("notebook").WithImage(n.Spec.Image).WithSecurityContext(resources.ContainerSecurity()).
		WithEnv(resources.SecretEnvVar("TOKEN", n.Spec.TokenSecret, "token")))
	deployment := d.Deployment(n.Spec.Replicas, pod, sidecar, &apisserver.Pods{})
	rollout.Apply(deployment)
	var desired apply.Desired
	desired.Add(d.ServiceAccount(), d.ReaderRole(d.Meta("notebook-user-"+n.Name)), d.EgressPolicy(), d.IngressPolicy(d.Port), d.Service("", ""), deployment)
	return slices.Concat(desired, proxy, d.DisruptionBudget(n.Spec.Replicas), n.published(in)), nil
}

func (n *Notebook) published(in *servers.Publishing) apply.Desired {
	if in.Exposure.UsesIngress() {
		return apply.Desired{{Config: n.describe().Ingress(n.Name+"."+in.Exposure.IngressDomain, in)}}
	}
	return n.describe().GatewayObjects(in)
}

// notebooks reconciles Notebooks.
type notebooks struct {
	*servers.Reconciler

	publishing servers.Publishing
}

func (r *notebooks) logic() reconciler.Logic[*Notebook] {
	return reconciler.Logic[*Notebook]{OnDeleted: r.Forget, Phases: []reconciler.Phase[*Notebook]{
		{Name: "issuing the certificate", Run: r.ensureCertificate},
		{Name: "applying objects", Run: r.applyObjects},
		{Name: "observing the server", Run: r.observe},
		{Name: "awaiting deadlines", Run: func(_ context.Context, n *Notebook) error { return r.AwaitDeadlines(n.UID) }},
	}}
}

func setAvailable(n *Notebook, s serving.State) {
	conditions.Set(&n.Status.Conditions, "Available", s.Status, s.Reason, s.Message, n.Generation)
}

func (r *notebooks) ensureCertificate(ctx context.Context, n *Notebook) error {
	return r.Certificates.Ensure(ctx, n, servingcert.Spec{
		Namespace: n.Namespace, Name: n.certificate(), CACommonName: "notebook-ca", Service: n.Name, Labels: n.describe().Labels(n.Name),
	})
}

func (r *notebooks) applyObjects(ctx context.Context, n *Notebook) error {
	in := r.publishing
	in.Authority = r.Certificates.CABundle(n.UID, n.certificate())
	if err := r.ReadRoutes(ctx, n, &in, n.published(&in)); err != nil {
		return err
	}
	hashes, _, err := r.ResolveReferences(ctx, n, n.Namespace, servers.References{
		Rollouts:  map[string][]reference.Reference{n.Name: {{Kind: reference.Secret, Name: n.Spec.TokenSecret, Keys: []string{"token"}}}},
		IsManaged: func(reference.Missing) bool { return false },
	})
	if err != nil {
		return err
	}
	desired, err := n.build(&in, hashes[n.Name])
	if err != nil {
		return err
	}
	if err := r.Applier.Apply(ctx, n, desired); err != nil {
		return servers.ReportError(err, func() { setAvailable(n, serving.Unavailable(err.Error())) })
	}
	return r.Applier.Prune(ctx, n, desired, in.Prunable(servers.Role), nil)
}

func (r *notebooks) observe(ctx context.Context, n *Notebook) error {
	d, err := r.Deployment(ctx, n.Namespace, n.Name)
	if err != nil {
		return err
	}
	state, err := r.Evaluate(ctx, d, client.ObjectKeyFromObject(n), conditions.IsTrue(n.Status.Conditions, "Available"))
	if err != nil {
		return err
	}
	setAvailable(n, state)
	if state.Status != metav1.ConditionTrue {
		return &reconciler.Wait{For: "the server to become available", Retry: reconciler.RequeueUnavailable, Stalled: conditions.ProgressDeadlineExceeded(d)}
	}
	return nil
}
