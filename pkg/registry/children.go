package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

// Kinds of the objects that a server and its database consist of.
var (
	Deployment         = appsv1.SchemeGroupVersion.WithKind("Deployment")
	Service            = corev1.SchemeGroupVersion.WithKind("Service")
	ServiceAccount     = corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	Secret             = corev1.SchemeGroupVersion.WithKind("Secret")
	ConfigMap          = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	Claim              = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	EndpointSlice      = discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice")
	Ingress            = networkingv1.SchemeGroupVersion.WithKind("Ingress")
	NetworkPolicy      = networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy")
	DisruptionBudget   = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	Role               = rbacv1.SchemeGroupVersion.WithKind("Role")
	RoleBinding        = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
	ClusterRoleBinding = rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")
)

// Optional are the children whose APIs may come and go.
var OptionalKinds = []schema.GroupVersionKind{capability.Route, capability.HTTPRoute, capability.ReferenceGrant, capability.BackendTLSPolicy}

// Caches says what of servers is held in memory, by our label, which EndpointSlices copy from their Service. An empty namespace is all;
// optional kinds are always watched in all.
func Caches(namespace string) []component.CacheNeed {
	needs := []component.CacheNeed{
		{Kind: Deployment, Namespace: namespace, FullObjects: true}, {Kind: EndpointSlice, Namespace: namespace, FullObjects: true}, {Kind: ClusterRoleBinding},
	}
	for _, kind := range []schema.GroupVersionKind{Service, ServiceAccount, NetworkPolicy, DisruptionBudget, Role, RoleBinding, Ingress} {
		needs = append(needs, component.CacheNeed{Kind: kind, Namespace: namespace})
	}
	for _, kind := range OptionalKinds {
		needs = append(needs, component.CacheNeed{Kind: kind})
	}
	return needs
}

// OwnsServer has a controller follow the children of its objects that are always served.
func OwnServerChildren(b *builder.Builder) *builder.Builder {
	b.Owns(&appsv1.Deployment{})
	for _, child := range []client.Object{
		&corev1.Service{}, &corev1.ServiceAccount{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{}, &networkingv1.Ingress{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{},
	} {
		b.Owns(child, builder.OnlyMetadata)
	}
	return b
}

// Find reads an object from the cache, or from the API server when it does not bear our label yet, and reports whether it is there.
func Find(ctx context.Context, cached, live client.Reader, key client.ObjectKey, object client.Object) (bool, error) {
	err := cached.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		err = live.Get(ctx, key, object)
	}
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// FindDeployment finds a Deployment. One that is not there is empty.
func FindDeployment(ctx context.Context, cached, live client.Reader, namespace, name string) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	if _, err := Find(ctx, cached, live, client.ObjectKey{Namespace: namespace, Name: name}, d); err != nil {
		return nil, fmt.Errorf("reading Deployment %s: %w", name, err)
	}
	return d, nil
}

// DatabaseCause returns what to add to the message of a server about its generated database, of which the pods are given, and the fields of
// its resources; "" where they run.
func DatabaseCause(ctx context.Context, cached, live client.Reader, namespace, name string, pods []corev1.Pod, fields conditions.Fields) (string, error) {
	d, err := FindDeployment(ctx, cached, live, namespace, name)
	if err != nil {
		return "", err
	}
	if cause := fields.Cause(d, pods); cause != "" {
		return "; its database: " + cause, nil
	}
	return "", nil
}

// EvaluateDeployment judges the Deployment of a server and the endpoints of the Service of the same name. available says that the server was so before:
// that stays until the Deployment controller has seen a change, which is a matter of milliseconds, and often of an annotation only.
func EvaluateDeployment(ctx context.Context, cached, live client.Reader, d *appsv1.Deployment, service client.ObjectKey,
	now time.Time, available bool,
) (serving.State, error) {
	if available && d.Generation != d.Status.ObservedGeneration {
		return serving.State{}, &reconciler.Wait{For: "the Deployment controller", Retry: time.Second, Unready: true}
	}
	return serving.Judge(d, service.Name, now, available, func() ([]discoveryv1.EndpointSlice, error) {
		return serving.Endpoints(ctx, cached, live, service.Namespace, service.Name)
	})
}

// Retry does what is to be done once in the life of a leader: it tries again, after pauses that grow from the first to the longest,
// until it succeeds or ctx ends.
func Retry(ctx context.Context, clk clock.Clock, first, longest time.Duration,
	try func(context.Context) error, failed func(error, time.Duration),
) {
	for pause := first; ; pause = min(2*pause, longest) {
		err := try(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		failed(err, pause)
		select {
		case <-ctx.Done():
			return
		case <-clk.After(pause):
		}
	}
}

// ConditionDatabaseCertificate exists, and is False, only while a certificate of a database runs out that the operator did not issue.
const ConditionDatabaseCertificate = "DatabaseCertificateReady"

// Certificates keeps the certificates of servers, where no platform makes them, and of their databases. Every client of these is ours, so
// that no platform needs to know their CA.
type Certificates struct{ server, database *servingcert.Keeper }

// NewCertificates reads the metadata of Secrets from cached.
func NewCertificates(cached, live client.Reader, applier *apply.Applier, clk clock.PassiveClock) *Certificates {
	return &Certificates{
		server:   &servingcert.Keeper{Cached: cached, Live: live, Applier: applier, Clock: clk},
		database: &servingcert.Keeper{Cached: cached, Live: live, Applier: applier, Clock: clk, Condition: ConditionDatabaseCertificate},
	}
}

// Keep issues and renews both certificates of an owner; nil is one that it needs none of.
func (c *Certificates) Ensure(ctx context.Context, owner reconciler.Object, server, database *servingcert.Wanted) error {
	return errors.Join(ensure(ctx, c.server, owner, server), ensure(ctx, c.database, owner, database))
}

func ensure(ctx context.Context, k *servingcert.Keeper, owner reconciler.Object, want *servingcert.Wanted) error {
	if want == nil {
		k.Leave(owner)
		return nil
	}
	return k.Keep(ctx, owner, *want)
}

// Authority is the CA that issued the certificate of a server; nil when another one did.
func (c *Certificates) Authority(owner types.UID) []byte { return c.server.Authority(owner) }

// AwaitRenewal brings an owner back when one of its certificates is due. It belongs to the last phase.
func (c *Certificates) RequeueForRenewal(owner types.UID) error {
	return errors.Join(c.server.AwaitRenewal(owner), c.database.AwaitRenewal(owner))
}

// Forget drops what is remembered for an owner that is gone.
func (c *Certificates) Forget(owner types.UID) {
	c.server.Forget(owner)
	c.database.Forget(owner)
}
