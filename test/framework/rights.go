package framework

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/rights"
)

// usedRights records the requests of the managers of this suite, on all its control planes.
var usedRights rights.Record

// recordedManagers holds the managers of a control plane. The permissions that they use are recorded.
type recordedManagers struct {
	accounts []account
	// components are the components that any of the managers enables; nil means all.
	components      []string
	allowedRefusals []allowedRefusal
}

// account is the user of a manager and its namespace.
type account struct{ user, namespace string }

// allowedRefusal allows refusals of a resource from a position in the audit log.
type allowedRefusal struct {
	resource string
	from     AuditPosition
}

// add registers a manager.
func (m *recordedManagers) add(user, namespace string, args []string) {
	first := len(m.accounts) == 0
	if added := (account{user: user, namespace: namespace}); !slices.Contains(m.accounts, added) {
		m.accounts = append(m.accounts, added)
	}
	components := componentsOf(args)
	if components == nil || !first && m.components == nil {
		m.components = nil
		return
	}
	m.components = append(m.components, components...)
	slices.Sort(m.components)
	m.components = slices.Compact(m.components)
}

// componentsOf returns the components of the flag --components; nil if it is not set or has a wildcard.
func componentsOf(args []string) []string {
	for _, arg := range args {
		list, found := strings.CutPrefix(arg, "--components=")
		if found && !strings.Contains(list, "*") {
			return strings.Split(list, ",")
		}
	}
	return nil
}

// AllowForbidden allows, from now on, refusals of the manager's requests for a resource, such as `gadgets.test.example.com`. Any other
// refusal fails the test of the shipped permissions, see package rbac.
func (e *Env) AllowForbidden(resource string) {
	ginkgo.GinkgoHelper()
	e.managers.allowedRefusals = append(e.managers.allowedRefusals, allowedRefusal{resource: resource, from: e.AuditPosition()})
}

// allows reports whether AllowForbidden allows a refusal.
func (m *recordedManagers) allows(use rights.Use, offset int64) bool {
	resource, _, _ := strings.Cut(use.Resource, "/")
	if use.Group != "" {
		resource += "." + use.Group
	}
	return slices.ContainsFunc(m.allowedRefusals, func(a allowedRefusal) bool { return a.resource == resource && int64(a.from) <= offset })
}

// recordRights reads the requests of the managers from the audit log, which is deleted with the control plane.
func (e *Env) recordRights(context.Context) {
	for _, account := range e.managers.accounts {
		log, err := os.Open(e.Audit().path)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		collector := &rights.Collector{User: account.user, Namespace: account.namespace, Expected: e.managers.allows}
		run, err := collector.Collect(log)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		gomega.Expect(log.Close()).To(gomega.Succeed())
		run.Components = e.managers.components
		usedRights.Add(run)
	}
}

// writeRights stores the record and prints the unexpected refusals. Package rbac reads the records of all suites and fails for unexpected
// refusals. A suite without a manager has no record.
func writeRights(report ginkgo.Report) error {
	if len(usedRights.Runs) == 0 {
		return nil
	}
	folder, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the folder of the suite: %w", err)
	}
	usedRights.Suite, usedRights.Complete = filepath.Base(folder), allRan(report)
	for _, run := range usedRights.Runs {
		for _, refusal := range run.Refused {
			if !refusal.Expected {
				fmt.Printf("REFUSED: %s\n", refusal.Message)
			}
		}
	}
	dir, err := rights.Dir()
	if err != nil {
		return err
	}
	return usedRights.Write(dir)
}

// allRan reports whether no spec failed, and no spec other than a nightly one was excluded by a flag or a focus. Specs that skip themselves
// count as run.
func allRan(report ginkgo.Report) bool {
	return report.SuiteSucceeded && !report.SuiteHasProgrammaticFocus && !slices.ContainsFunc(report.SpecReports, func(spec ginkgo.SpecReport) bool {
		return spec.State == types.SpecStateSkipped && spec.NumAttempts == 0 && !slices.Contains(spec.Labels(), nightly)
	})
}
