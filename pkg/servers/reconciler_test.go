package servers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
)

// notebookFixture is a reconciler of Notebooks with a fake API server and clock.
type notebookFixture struct {
	*testing.T
	server        *fakeapi.Server
	clock         *clocktesting.FakeClock
	reconcileOnce func() error
}

func newNotebookFixture(t *testing.T, n *Notebook) *notebookFixture {
	t.Helper()
	scheme := fakeapi.Scheme(func(s *runtime.Scheme) error {
		s.AddKnownTypes(notebookKind.GroupVersion(), &Notebook{}, &NotebookList{})
		metav1.AddToGroupVersion(s, notebookKind.GroupVersion())
		return nil
	})
	mapper := meta.NewDefaultRESTMapper(nil) // the default mapper of the fake client is empty
	for kind := range scheme.AllKnownTypes() {
		scope := meta.RESTScope(meta.RESTScopeNamespace)
		if strings.HasPrefix(kind.Kind, "Cluster") {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
	}
	e := &notebookFixture{T: t, clock: clocktesting.NewFakeClock(time.Unix(1700000000, 0))}
	e.server = fakeapi.New(t, func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithStatusSubresource(&Notebook{}, &appsv1.Deployment{}).
			WithIndex(&Notebook{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
	}, n)
	applier := apply.New(apply.Options{Client: e.server, Live: e.server, FieldOwner: "notebook-operator", Component: "notebook"})
	r := &notebooks{
		Reconciler: servers.NewReconciler(e.server, e.server, e.server, applier, e.clock),
		publishing: servers.Publishing{Exposure: config.Exposure{Kind: config.ExposeIngress, IngressDomain: "apps.example.com"}},
	}
	base := reconciler.New(reconciler.Options{Client: e.server, Component: "notebook"}, r.logic())
	e.reconcileOnce = func() error {
		_, err := base.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(n)})
		return err
	}
	return e
}

// reconcile reconciles until no write is sent, and returns all writes.
func (e *notebookFixture) reconcile() []string {
	e.Helper()
	var all []string
	for range 10 {
		e.server.Writes = nil
		if err := e.reconcileOnce(); err != nil {
			e.Fatal(err)
		}
		if len(e.server.Writes) == 0 {
			return all
		}
		for _, w := range e.server.Writes {
			all = append(all, w.String())
		}
	}
	e.Fatalf("no steady state after 10 reconciles: %v", all)
	return nil
}

func (e *notebookFixture) get(object client.Object, name string) bool {
	e.Helper()
	err := e.server.Get(e.Context(), client.ObjectKey{Namespace: "team", Name: name}, object)
	if client.IgnoreNotFound(err) != nil {
		e.Fatal(err)
	}
	return !apierrors.IsNotFound(err)
}

func (e *notebookFixture) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// condition returns status and reason of a condition of the Notebook, "" without it.
func (e *notebookFixture) condition(conditionType string) string {
	e.Helper()
	n := &Notebook{}
	e.get(n, "lab")
	if c := meta.FindStatusCondition(n.Status.Conditions, conditionType); c != nil {
		return fmt.Sprintf("%s %s", c.Status, c.Reason)
	}
	return ""
}

// rollOut sets the status of a completed rollout, as the Deployment controller would.
func (e *notebookFixture) rollOut() {
	e.Helper()
	d := &appsv1.Deployment{}
	e.get(d, "lab")
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2, ReadyReplicas: 2,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(e.clock.Now().Add(-time.Minute))}},
	}
	e.must(e.server.Status().Update(e.Context(), d))
}

func newNotebook() *Notebook {
	n := &Notebook{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lab"}}
	n.Spec.Image, n.Spec.Replicas, n.Spec.TokenSecret = "notebook:1", new(int32(2)), "token"
	return n
}

// A component for another server needs only a kind, a description and phases, see notebook_test.go.
func TestNewServerCreatesAllObjects(t *testing.T) {
	e := newNotebookFixture(t, newNotebook())
	writes := e.reconcile()
	for _, want := range []string{
		"apply Secret lab-tls", "apply ServiceAccount lab", "apply Role notebook-user-lab", "apply NetworkPolicy lab-egress", "apply NetworkPolicy lab-ingress",
		"apply ConfigMap lab-kube-rbac-proxy-config", "apply ClusterRoleBinding lab-auth-delegator", "apply Service lab", "apply Deployment lab",
		"apply PodDisruptionBudget lab", "apply Ingress lab-https",
	} {
		if !slices.Contains(writes, want) {
			t.Errorf("missing write %q, got %v", want, writes)
		}
	}
	guard, workload := slices.Index(writes, "apply NetworkPolicy lab-ingress"), slices.Index(writes, "apply Deployment lab")
	if exposure := slices.Index(writes, "apply Ingress lab-https"); guard > workload || workload > exposure {
		t.Errorf("want guards, workloads and exposure in this order, got %v", writes)
	}
	if got := e.condition("Available"); got != "False DeploymentStarting" {
		t.Errorf("got Available %q while the server starts, want False DeploymentStarting", got)
	}
	if got := e.condition(reference.Condition); got != "False "+reference.ReasonMissing {
		t.Errorf("got %s %q without the Secret of the user, want False %s", reference.Condition, got, reference.ReasonMissing)
	}
	ingress := &networkingv1.Ingress{}
	if e.get(ingress, "lab-https"); ingress.Spec.Rules[0].Host != "lab.apps.example.com" || ingress.Annotations["nginx.ingress.kubernetes.io/backend-protocol"] != "HTTPS" {
		t.Errorf("got Ingress %+v, want host lab.apps.example.com and backend protocol HTTPS", ingress)
	}
}

// Changes of references, certificate, availability and replicas are reconciled. The steady state has no writes.
func TestNewServerFollowsChanges(t *testing.T) {
	e := newNotebookFixture(t, newNotebook())
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "token"}, Data: map[string][]byte{"token": []byte("a"), "other": []byte("a")}}
	e.must(e.server.Create(t.Context(), token))
	e.must(e.server.Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lab-1", Labels: map[string]string{discoveryv1.LabelServiceName: "lab"}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	}))
	e.reconcile()
	e.rollOut()
	if e.reconcile(); e.condition("Available") != "True DeploymentAvailable" || e.condition("Ready") != "True DeploymentAvailable" || e.condition(reference.Condition) != "" {
		t.Fatalf("got Available %q, Ready %q and references %q, want True DeploymentAvailable twice and no references", e.condition("Available"), e.condition("Ready"), e.condition(reference.Condition))
	}
	rollout := func() string {
		d := &appsv1.Deployment{}
		e.get(d, "lab")
		return d.Spec.Template.Annotations[reference.RolloutAnnotation]
	}
	token.Data["other"] = []byte("b")
	e.must(e.server.Update(t.Context(), token))
	if writes := e.reconcile(); len(writes) != 0 || rollout() != "" {
		t.Errorf("got writes %v and rollout %q after a change of an unused key, want none", writes, rollout())
	}
	token.Data["token"] = []byte("b")
	e.must(e.server.Update(t.Context(), token))
	if e.reconcile(); rollout() == "" {
		t.Error("a change of the token did not restart the pods")
	}
	e.rollOut()
	e.reconcile()
	e.clock.Step(servingcert.Lifetime)
	if writes := e.reconcile(); !slices.Equal(writes, []string{"apply Secret lab-tls"}) {
		t.Errorf("unexpected writes at the renewal of the certificate: %v", writes)
	}
	n := &Notebook{}
	e.get(n, "lab")
	n.Spec.Replicas = nil
	e.must(e.server.Update(t.Context(), n))
	if writes := e.reconcile(); e.get(&policyv1.PodDisruptionBudget{}, "lab") {
		t.Errorf("got a PodDisruptionBudget with one replica, want none; writes: %v", writes)
	}
}

// A foreign object is reported and not changed.
func TestNewServerReportsForeignObject(t *testing.T) {
	e := newNotebookFixture(t, newNotebook())
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lab"}}
	e.must(e.server.Create(t.Context(), foreign))
	err := e.reconcileOnce()
	n := &Notebook{}
	e.get(n, "lab")
	c := meta.FindStatusCondition(n.Status.Conditions, "Available")
	if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "Service team/lab") {
		t.Errorf("got error %v, condition %+v", err, c)
	}
	if e.get(foreign, "lab"); len(foreign.OwnerReferences)+len(foreign.Labels) > 0 {
		t.Errorf("the foreign Service was changed: %+v", foreign.ObjectMeta)
	}
}
