package kubectl_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	managerNamespace = "opendatahub"
	team             = "team"

	specTimeout = 3 * time.Minute
)

// The specs run kubectl-odh as a process, most with only the permissions of the ClusterRole view. In the cluster, the manager reconciles a
// few resources, some of them broken.
var (
	env     *framework.Env
	manager *framework.Manager
	program string // path of kubectl-odh
	plugins string // folder on the PATH with the program
	// viewer has the ClusterRole view in all namespaces, member only in the namespace team.
	viewer, member user
)

// user is a user with a kubeconfig.
type user struct {
	kubeconfig string
	name       string // in the audit log
}

func TestKubectl(t *testing.T) { framework.Run(t, "kubectl odh") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "kubectl", cluster.Plain, framework.WithOperator("config/default"),
		framework.WithTypes(mlflowv1.AddToScheme, awv1beta2.AddToScheme))
	var err error
	program, err = cluster.BuildProgram(ctx, "./cmd/kubectl-odh", []string{"grpcnotrace"}, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	// kubectl discovers plugins by file name.
	plugins = filepath.Join(env.Instance.Dir(), "plugins")
	Expect(os.Mkdir(plugins, 0o755)).To(Succeed())
	Expect(os.Symlink(program, filepath.Join(plugins, "kubectl-odh"))).To(Succeed())
	manager = env.StartManager(ctx, framework.ManagerOptions{
		WebhookPort: env.Installed.WebhookPort,
		Env:         []string{"MLFLOW_IMAGE=quay.io/example/mlflow:v3"},
	})
	// kubectl-odh reads the settings of the manager from this Deployment, whose pods are fake.
	Expect(env.Admin.Create(ctx, env.Installed.Deployment)).To(Succeed())
	Expect(env.Admin.Create(ctx, framework.NamespaceNamed(team))).To(Succeed())
	viewer = newUser(ctx, "viewer")
	Expect(env.Admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, Subjects: viewer.subjects("viewer"), RoleRef: view,
	})).To(Succeed())
	member = newUser(ctx, "member")
	Expect(env.Admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "member", Namespace: team}, Subjects: member.subjects("member"), RoleRef: view,
	})).To(Succeed())
	createResources(ctx)
}, NodeTimeout(framework.StartTimeout))

var view = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}

// newUser creates a ServiceAccount in the namespace team, without permissions.
func newUser(ctx context.Context, name string) user {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: team}})).To(Succeed())
	path, err := operator.Kubeconfig(ctx, env.Instance, types.NamespacedName{Namespace: team, Name: name}, "kubectl-odh-"+name, team)
	Expect(err).NotTo(HaveOccurred())
	return user{kubeconfig: path, name: "system:serviceaccount:" + team + ":" + name}
}

func (user) subjects(name string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: team, Name: name}}
}

type result struct {
	code           int
	stdout, stderr string
}

// odh runs kubectl-odh as a user, with its output in pipes.
func odh(ctx context.Context, as user, args ...string) result {
	GinkgoHelper()
	return runProgram(ctx, as, program, args...)
}

// externalDiff ignores the generation, because the API server increments it for an empty list of egress rules, which it does not store.
const externalDiff = "KUBECTL_EXTERNAL_DIFF=diff -u -N -I generation"

func runProgram(ctx context.Context, as user, path string, args ...string) result {
	GinkgoHelper()
	command := exec.CommandContext(ctx, path, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+as.kubeconfig, "TERM=xterm-256color", externalDiff, "PATH="+plugins+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := command.Output()
	if err == nil {
		return result{stdout: string(out)}
	}
	var exitErr *exec.ExitError
	Expect(errors.As(err, &exitErr)).To(BeTrue(), "%v", err)
	return result{exitErr.ExitCode(), string(out), string(exitErr.Stderr)}
}
