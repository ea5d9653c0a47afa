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

// permission is a verb on a resource, with the roles that grant it in a namespace.
type permission struct {
	group, resource, verb string
	roles                 []string
}

const (
	mlflowGroup     = "mlflow.kubeflow.org"
	appWrapperGroup = "workload.codeflare.dev"
	registryGroup   = "modelregistry.opendatahub.io"
	servingGroup    = "serving.kserve.io"
	operatorGroup   = "mlflow.opendatahub.io"
	catalogGroup    = "aihub.opendatahub.io"
	platformGroup   = "components.platform.opendatahub.io"
)

var (
	allRoles = []string{"view", "edit", "admin"}
	editors  = []string{"edit", "admin"}
)

// Each role has its own namespace, and a user who has only this role. Kubernetes aggregates some shipped roles to view, edit and admin.
var _ = Describe("Users with the shipped and aggregated roles", func() {
	permissions := []permission{
		{operatorGroup, "mlflows", "get", append([]string{"mlflow-operator-mlflow-view", "mlflow-operator-mlflow-edit", "mlflow-operator-mlflow-admin"}, allRoles...)},
		{operatorGroup, "mlflows", "create", append([]string{"mlflow-operator-mlflow-edit", "mlflow-operator-mlflow-admin"}, editors...)},
		{operatorGroup, "mlflows/status", "patch", nil},
		{mlflowGroup, "experiments", "get", append([]string{"mlflow-operator-mlflow-view", "mlflow-operator-mlflow-integration"}, allRoles...)},
		{mlflowGroup, "experiments", "delete", append([]string{"mlflow-operator-mlflow-edit"}, editors...)},
		{mlflowGroup, "experiments", "update", append([]string{"mlflow-operator-mlflow-edit", "mlflow-operator-mlflow-integration"}, editors...)},
		{mlflowGroup, "gatewaysecrets", "get", append([]string{"mlflow-operator-mlflow-edit"}, editors...)},
		{mlflowGroup, "gatewayendpoints/use", "create", append([]string{"mlflow-operator-mlflow-edit", "mlflow-operator-mlflow-integration"}, editors...)},
		{mlflowGroup, "mlflowconfigs", "deletecollection", append([]string{"mlflow-operator-mlflow-edit", "mlflow-operator-mlflow-admin"}, editors...)},
		{appWrapperGroup, "appwrappers", "list", append([]string{"appwrapper-admin-role", "codeflare-operator-appwrapper-editor-role", "codeflare-operator-viewer-role", "appwrapper-user-role"}, allRoles...)},
		{appWrapperGroup, "appwrappers", "create", append([]string{"appwrapper-admin-role", "codeflare-operator-appwrapper-editor-role", "appwrapper-user-role"}, editors...)},
		{appWrapperGroup, "appwrappers", "update", append([]string{"appwrapper-admin-role", "codeflare-operator-appwrapper-editor-role"}, editors...)},
		{appWrapperGroup, "appwrappers/status", "get", append([]string{"appwrapper-admin-role", "codeflare-operator-appwrapper-editor-role", "codeflare-operator-viewer-role", "appwrapper-user-role"}, allRoles...)},
		{appWrapperGroup, "appwrappers/status", "update", nil},
		{appWrapperGroup, "appwrappers", "deletecollection", []string{"appwrapper-admin-role"}},
		{catalogGroup, "catalogs", "get", []string{"modelcatalog-viewer-role", "modelcatalog-editor-role", "modelcatalog-admin-role"}},
		{catalogGroup, "catalogs", "update", []string{"modelcatalog-editor-role", "modelcatalog-admin-role"}},
		{catalogGroup, "catalogs", "deletecollection", []string{"modelcatalog-admin-role"}},
		{catalogGroup, "catalogs/status", "update", nil},
		{platformGroup, "aihubs", "list", []string{"aihub-viewer-role", "aihub-editor-role", "aihub-admin-role"}},
		{platformGroup, "aihubs", "create", []string{"aihub-editor-role", "aihub-admin-role"}},
		{platformGroup, "mlflowoperators", "list", []string{"mlflowoperator-viewer-role", "mlflowoperator-editor-role", "mlflowoperator-admin-role"}},
		{platformGroup, "mlflowoperators", "delete", []string{"mlflowoperator-editor-role", "mlflowoperator-admin-role"}},
		{platformGroup, "mlflowoperators/status", "update", nil},
		{appWrapperGroup, "appwrappers/finalizers", "update", []string{"appwrapper-user-role"}},
		{registryGroup, "modelregistries", "watch", []string{"modelregistry-viewer-role", "modelregistry-editor-role", "modelregistry-admin-role"}},
		{registryGroup, "modelregistries", "patch", []string{"modelregistry-editor-role", "modelregistry-admin-role"}},
		{registryGroup, "modelregistries", "deletecollection", []string{"modelregistry-admin-role"}},
		{servingGroup, "inferenceservices", "get", append([]string{"model-serving-admin", "model-serving-edit", "model-serving-view", "modelmesh-inferenceservice-admin-role", "modelmesh-inferenceservice-editor-role", "modelmesh-inferenceservice-viewer-role"}, allRoles...)},
		{servingGroup, "servingruntimes", "create", append([]string{"model-serving-admin", "model-serving-edit", "modelmesh-servingruntime-editor-role", "modelmesh-servingruntime-admin-role"}, editors...)},
		{servingGroup, "servingruntimes", "list", append([]string{"model-serving-admin", "model-serving-edit", "model-serving-view", "modelmesh-servingruntime-admin-role", "modelmesh-servingruntime-editor-role", "modelmesh-servingruntime-viewer-role"}, allRoles...)},
		{servingGroup, "predictors", "delete", []string{"modelmesh-predictor-editor-role", "modelmesh-predictor-admin-role"}},
		{servingGroup, "predictors/status", "get", []string{"modelmesh-predictor-admin-role", "modelmesh-predictor-editor-role", "modelmesh-predictor-viewer-role"}},
		{"", "endpoints", "watch", append([]string{"prometheus-ns-access"}, allRoles...)},
		{"networking.k8s.io", "ingresses", "list", append([]string{"prometheus-ns-access"}, allRoles...)},
		{"", "secrets", "get", editors},
		{"rbac.authorization.k8s.io", "rolebindings", "create", []string{"admin"}},
	}

	It("have exactly the permissions of their roles in a namespace", func(ctx SpecContext) {
		users := map[string]user{}
		for _, a := range permissions {
			for _, role := range append(allRoles, a.roles...) {
				if users[role].Client == nil {
					users[role] = createUser(ctx, role)
				}
			}
		}
		for _, a := range permissions {
			for role, subject := range users {
				Eventually(subject.isAllowed).WithContext(ctx).WithArguments(a).Should(Equal(slices.Contains(a.roles, role)), "%s: %s %s of %q", role, a.verb, a.resource, a.group)
			}
		}
	}, SpecTimeout(specTimeout))

	It("can delete AppWrappers as editors of a namespace, and only read them as viewers", func(ctx SpecContext) {
		editor, viewer := createUser(ctx, "edit"), createUser(ctx, "view")
		wrapper := &unstructured.Unstructured{Object: map[string]any{"apiVersion": appWrapperGroup + "/v1beta2", "kind": "AppWrapper"}}
		wrapper.SetName("none")
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": appWrapperGroup + "/v1beta2", "kind": "AppWrapperList"}}
		Eventually(func() error { return viewer.List(ctx, list, client.InNamespace(viewer.namespace)) }).WithContext(ctx).Should(Succeed())
		Expect(apierrors.IsForbidden(viewer.List(ctx, list, client.InNamespace(editor.namespace)))).To(BeTrue(), "in the namespace of another user")
		deleteWrapper := func(as user, namespace string) error {
			wrapper.SetNamespace(namespace)
			return as.Delete(ctx, wrapper)
		}
		Eventually(func() bool { return apierrors.IsNotFound(deleteWrapper(editor, editor.namespace)) }).WithContext(ctx).Should(BeTrue(), "allowed, but the AppWrapper does not exist")
		Expect(apierrors.IsForbidden(deleteWrapper(editor, viewer.namespace))).To(BeTrue(), "in the namespace of another user")
		Expect(apierrors.IsForbidden(deleteWrapper(viewer, viewer.namespace))).To(BeTrue())
	}, SpecTimeout(specTimeout))
})

// user is a client whose user has one role in one namespace.
type user struct {
	client.Client
	namespace string
}

func createUser(ctx context.Context, role string) user {
	GinkgoHelper()
	created := user{namespace: env.Namespace(ctx, "user")}
	name := created.namespace // also the name of the user
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: created.namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}
	Expect(env.Admin.Create(ctx, binding)).To(Succeed())
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	var err error
	created.Client, err = client.New(config, client.Options{Scheme: env.Scheme})
	Expect(err).NotTo(HaveOccurred())
	return created
}

// isAllowed reports whether the API server grants the user a permission. Aggregated roles and bindings take effect with a delay.
func (u user) isAllowed(ctx context.Context, a permission) (bool, error) {
	resource, sub, _ := strings.Cut(a.resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: u.namespace, Verb: a.verb, Group: a.group, Resource: resource, Subresource: sub,
	}}}
	err := u.Create(ctx, review)
	return review.Status.Allowed, err
}
