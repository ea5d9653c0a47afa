package plain_test

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ask is a right, with the roles that grant it in a namespace.
type ask struct {
	group, resource, verb string
	roles                 []string
}

const (
	mlflowKinds = "mlflow.kubeflow.org"
	wrappers    = "workload.codeflare.dev"
	registries  = "modelregistry.opendatahub.io"
	serving     = "serving.kserve.io"
	operators   = "mlflow.opendatahub.io"
	catalogs    = "aihub.opendatahub.io"
	areas       = "components.platform.opendatahub.io"
)

var (
	allRoles = []string{"view", "edit", "admin"}
	editors  = []string{"edit", "admin"}
)

// Each role has a namespace with a user who has no other role. Kubernetes aggregates shipped roles to view, edit and admin; the others are
// bound by name.
var _ = Describe("Users with the aggregated roles", func() {
	asks := []ask{
		{operators, "mlflows", "get", append([]string{"mlflow-operator-mlflow-view", "mlflow-operator-mlflow-edit", "mlflow-operator-mlflow-admin"}, allRoles...)},
		{operators, "mlflows", "create", append([]string{"mlflow-operator-mlflow-edit", "mlflow-operator-mlflow-admin"}, editors...)},
		{operators, "mlflows/status", "patch", nil},
		{mlflowKinds, "experiments", "get", append([]string{"mlflow-operator-mlflow-view", "mlflow-operator-mlflow-integration"}, allRoles...)},
		{mlflowKinds, "experiments", "delete", append([]string{"mlflow-operator-mlflow-edit"}, editors...)},
		{mlflowKinds, "experiments", "update", append([]string{"mlflow-operator-mlflow-edit", "mlflow-operator-mlflow-integration"}, editors...)},
		{mlflowKinds, "gatewaysecrets", "get", append([]string{"mlflow-operator-mlflow-edit"}, editors...)},
		{mlflowKinds, "gatewayendpoints/use", "create", append([]string{"mlflow-operator-mlflow-edit", "mlflow-operator-mlflow-integration"}, editors...)},
		{mlflowKinds, "mlflowconfigs", "deletecollection", append([]string{"mlflow-operator-mlflow-edit", "mlflow-operator-mlflow-admin"}, editors...)},
		{wrappers, "appwrappers", "list", append([]string{"appwrapper-admin-role", "codeflare-operator-appwrapper-editor-role", "codeflare-operator-viewer-role", "appwrapper-user-role"}, allRoles...)},
		{wrappers, "appwrappers", "create", append([]string{"appwrapper-admin-role", "codeflare-operator-appwrapper-editor-role", "appwrapper-user-role"}, editors...)},
		{wrappers, "appwrappers", "update", append([]string{"appwrapper-admin-role", "codeflare-operator-appwrapper-editor-role"}, editors...)},
		{wrappers, "appwrappers/status", "get", append([]string{"appwrapper-admin-role", "codeflare-operator-appwrapper-editor-role", "codeflare-operator-viewer-role", "appwrapper-user-role"}, allRoles...)},
		{wrappers, "appwrappers/status", "update", nil},
		{wrappers, "appwrappers", "deletecollection", []string{"appwrapper-admin-role"}},
		{catalogs, "catalogs", "get", []string{"modelcatalog-viewer-role", "modelcatalog-editor-role", "modelcatalog-admin-role"}},
		{catalogs, "catalogs", "update", []string{"modelcatalog-editor-role", "modelcatalog-admin-role"}},
		{catalogs, "catalogs", "deletecollection", []string{"modelcatalog-admin-role"}},
		{catalogs, "catalogs/status", "update", nil},
		{areas, "aihubs", "list", []string{"aihub-viewer-role", "aihub-editor-role", "aihub-admin-role"}},
		{areas, "aihubs", "create", []string{"aihub-editor-role", "aihub-admin-role"}},
		{areas, "mlflowoperators", "list", []string{"mlflowoperator-viewer-role", "mlflowoperator-editor-role", "mlflowoperator-admin-role"}},
		{areas, "mlflowoperators", "delete", []string{"mlflowoperator-editor-role", "mlflowoperator-admin-role"}},
		{areas, "mlflowoperators/status", "update", nil},
		{wrappers, "appwrappers/finalizers", "update", []string{"appwrapper-user-role"}},
		{registries, "modelregistries", "watch", []string{"modelregistry-viewer-role", "modelregistry-editor-role", "modelregistry-admin-role"}},
		{registries, "modelregistries", "patch", []string{"modelregistry-editor-role", "modelregistry-admin-role"}},
		{registries, "modelregistries", "deletecollection", []string{"modelregistry-admin-role"}},
		{serving, "inferenceservices", "get", append([]string{"model-serving-admin", "model-serving-edit", "model-serving-view", "modelmesh-inferenceservice-admin-role", "modelmesh-inferenceservice-editor-role", "modelmesh-inferenceservice-viewer-role"}, allRoles...)},
		{serving, "servingruntimes", "create", append([]string{"model-serving-admin", "model-serving-edit", "modelmesh-servingruntime-editor-role", "modelmesh-servingruntime-admin-role"}, editors...)},
		{serving, "servingruntimes", "list", append([]string{"model-serving-admin", "model-serving-edit", "model-serving-view", "modelmesh-servingruntime-admin-role", "modelmesh-servingruntime-editor-role", "modelmesh-servingruntime-viewer-role"}, allRoles...)},
		{serving, "predictors", "delete", []string{"modelmesh-predictor-editor-role", "modelmesh-predictor-admin-role"}},
		{serving, "predictors/status", "get", []string{"modelmesh-predictor-admin-role", "modelmesh-predictor-editor-role", "modelmesh-predictor-viewer-role"}},
		{"", "endpoints", "watch", append([]string{"prometheus-ns-access"}, allRoles...)},
		{"networking.k8s.io", "ingresses", "list", append([]string{"prometheus-ns-access"}, allRoles...)},
		{"", "secrets", "get", editors},
		{"rbac.authorization.k8s.io", "rolebindings", "create", []string{"admin"}},
	}

	It("have exactly the permissions of their roles in a namespace", func(ctx SpecContext) {
		people := map[string]person{}
		for _, a := range asks {
			for _, role := range append(allRoles, a.roles...) {
				if people[role].Client == nil {
					people[role] = personWith(ctx, role)
				}
			}
		}
		for _, a := range asks {
			for role, who := range people {
				Eventually(who.may).WithContext(ctx).WithArguments(a).Should(Equal(slices.Contains(a.roles, role)), "%s: %s %s of %q", role, a.verb, a.resource, a.group)
			}
		}
	}, SpecTimeout(specTimeout))

	It("can delete AppWrappers as editors of a namespace, and only read them as viewers", func(ctx SpecContext) {
		editor, viewer := personWith(ctx, "edit"), personWith(ctx, "view")
		wrapper := &unstructured.Unstructured{Object: map[string]any{"apiVersion": wrappers + "/v1beta2", "kind": "AppWrapper"}}
		wrapper.SetName("none")
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": wrappers + "/v1beta2", "kind": "AppWrapperList"}}
		Eventually(func() error { return viewer.List(ctx, list, client.InNamespace(viewer.namespace)) }).WithContext(ctx).Should(Succeed())
		Expect(apierrors.IsForbidden(viewer.List(ctx, list, client.InNamespace(editor.namespace)))).To(BeTrue(), "in the namespace of another")
		remove := func(who person, namespace string) error {
			wrapper.SetNamespace(namespace)
			return who.Delete(ctx, wrapper)
		}
		Eventually(func() bool { return apierrors.IsNotFound(remove(editor, editor.namespace)) }).WithContext(ctx).Should(BeTrue(), "allowed, but there is none")
		Expect(apierrors.IsForbidden(remove(editor, viewer.namespace))).To(BeTrue(), "in the namespace of another")
		Expect(apierrors.IsForbidden(remove(viewer, viewer.namespace))).To(BeTrue())
	}, SpecTimeout(specTimeout))
})

// person has a role in a namespace.
type person struct {
	client.Client
	namespace string
}

func personWith(ctx context.Context, role string) person {
	GinkgoHelper()
	who := person{namespace: env.Namespace(ctx, "person")}
	name := who.namespace // also the name of the user
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: who.namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}
	Expect(env.Admin.Create(ctx, binding)).To(Succeed())
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	var err error
	who.Client, err = client.New(config, client.Options{Scheme: env.Scheme})
	Expect(err).NotTo(HaveOccurred())
	return who
}

// may reports whether the API server grants the person a right. Aggregated roles and bindings take effect with a delay.
func (p person) may(ctx context.Context, a ask) (bool, error) {
	resource, sub, _ := strings.Cut(a.resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: p.namespace, Verb: a.verb, Group: a.group, Resource: resource, Subresource: sub,
	}}}
	err := p.Create(ctx, review)
	return review.Status.Allowed, err
}
