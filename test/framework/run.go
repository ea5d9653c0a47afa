package framework

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// ciVariable is "true" in CI, see .ci/run.
	ciVariable = "CI"
	// summaryVariable names the file that CI prints at its end. Failed and flaky specs are appended to it, because `go test` prints nothing of
	// a package that passes.
	summaryVariable = "CI_SUMMARY"
	// timingsVariable names the file to which the duration of each spec is appended.
	timingsVariable = "TIMINGS_FILE"
	// nightly is the label of specs that take minutes to prepare. They run only if a label filter selects them, as in `make test-nightly`.
	nightly = "nightly"
	// attemptsInCI is the number of attempts of a spec in CI. Outside CI a spec has one attempt, so its author notices flakes.
	attemptsInCI = 2
)

// Run runs the specs of the calling package in random order. By default, Eventually polls ten times a second for two minutes, because the
// control plane shares the processors.
func Run(t *testing.T, name string) {
	t.Helper()
	gomega.RegisterFailHandler(ginkgo.Fail)
	ctrllog.SetLogger(ginkgo.GinkgoLogr)
	gomega.SetDefaultEventuallyTimeout(waitTimeout)
	gomega.SetDefaultEventuallyPollingInterval(waitPoll)
	gomega.SetDefaultConsistentlyPollingInterval(waitPoll)
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.RandomizeAllSpecs = true
	suite.LabelFilter = cmp.Or(suite.LabelFilter, "!"+nightly)
	suite.FlakeAttempts = attempts(suite.FlakeAttempts, os.Getenv(ciVariable))
	if deadline, ok := t.Deadline(); ok {
		// If `go test` ended the suite, it would name no spec and leave processes running.
		suite.Timeout = min(suite.Timeout, time.Until(deadline)*9/10)
	}
	ginkgo.AfterEach(func() {
		for _, manager := range sharedManagers {
			manager.reportLog()
		}
	})
	ginkgo.ReportAfterSuite("failed and flaky specs", func(report ginkgo.Report) {
		lines := failedAndFlakySpecs(report)
		fmt.Print(lines)
		gomega.Expect(appendTo(os.Getenv(summaryVariable), lines)).To(gomega.Succeed())
		gomega.Expect(appendTo(os.Getenv(timingsVariable), timings(report))).To(gomega.Succeed())
	})
	ginkgo.ReportAfterSuite("used rights", func(report ginkgo.Report) {
		gomega.Expect(writeRights(report)).To(gomega.Succeed())
	})
	ginkgo.RunSpecs(t, name, suite, reporter)
}

// attempts returns the flag -ginkgo.flake-attempts, or its default for CI if the flag is not set.
func attempts(flag int, ci string) int {
	if flag == 0 && ci == "true" {
		return attemptsInCI
	}
	return flag
}

// failedAndFlakySpecs returns a line for each spec or node that failed, or did not pass at its first attempt.
func failedAndFlakySpecs(report ginkgo.Report) string {
	var lines string
	for _, spec := range report.SpecReports {
		result := ""
		switch {
		case spec.State.Is(types.SpecStateFailureStates):
			result = "FAILED"
		case spec.State == types.SpecStatePassed && spec.NumAttempts > 1 && spec.MaxFlakeAttempts > 1:
			result = "FLAKED"
		default:
			continue
		}
		name := spec.FullText()
		if name == "" {
			// The name of a node around the specs does not describe the failed check.
			name = fmt.Sprintf("%s: %.1000s", spec.LeafNodeType, strings.Join(strings.Fields(spec.FailureMessage()), " "))
		}
		lines += fmt.Sprintf("%s: %s: %s (%s, attempt %d)\n",
			result, report.SuiteDescription, name, spec.RunTime.Round(time.Second), spec.NumAttempts)
	}
	return lines
}

// timings returns a line for each spec and node that ran: seconds, suite and name, for sort -rn.
func timings(report ginkgo.Report) string {
	var lines string
	for _, spec := range report.SpecReports {
		if spec.RunTime > 0 {
			lines += fmt.Sprintf("%.1f\t%s\t%s %s\n", spec.RunTime.Seconds(), report.SuiteDescription, spec.LeafNodeType, spec.FullText())
		}
	}
	return lines
}

// appendTo appends a text to a file. It does nothing if path is empty.
func appendTo(path, text string) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the report of specs: %w", err)
	}
	if _, err := file.WriteString(text); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
