<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

use Symfony\Component\Process\Process;

/** Asks PHPUnit for all tests and their groups. */
final class TestList
{
    private const TIMEOUT = 120.0;

    /**
     * @param list<string> $paths empty for all suites
     * @param bool         $full  whether to include tests of the group "full"
     *
     * @return list<TestClass>
     *
     * @throws RunnerException
     */
    public static function find(array $paths, bool $full, Sandbox $sandbox): array
    {
        $listed = self::listed($paths, $sandbox);
        $quiet = self::idsOf($listed, 'quiet');
        $left = $full ? [] : self::idsOf($listed, 'full');

        $classes = [];
        foreach ($listed->getElementsByTagName('testClass') as $class) {
            $counts = ['parallel' => 0, 'quiet' => 0];
            foreach ($class->getElementsByTagName('testMethod') as $test) {
                $id = $test->getAttribute('id');
                if (!isset($left[$id])) {
                    ++$counts[isset($quiet[$id]) ? 'quiet' : 'parallel'];
                }
            }
            foreach ($counts as $kind => $tests) {
                if ($tests > 0) {
                    $classes[] = new TestClass(self::relative($class->getAttribute('file')), $tests, $kind === 'quiet');
                }
            }
        }

        return $classes;
    }

    /** @param list<string> $paths */
    private static function listed(array $paths, Sandbox $sandbox): \DOMDocument
    {
        $command = [
            \PHP_BINARY, 'vendor/bin/phpunit',
            '--list-tests-xml', 'php://stdout', '--exclude-group', ClassRun::NO_GROUP,
            ...$paths,
        ];
        $phpunit = new Process($sandbox->around($command), env: [ClassRun::MARK => 'list'], timeout: self::TIMEOUT);
        $phpunit->run();
        $output = $phpunit->getErrorOutput() . $phpunit->getOutput();
        $isWhole = preg_match('~^<\?xml .*^</testSuite>$~ms', $phpunit->getOutput(), $list) === 1;
        $document = new \DOMDocument();
        $isListed = $phpunit->isSuccessful()
            && $isWhole
            && @$document->loadXML($list[0])
            && !str_contains($output, ClassRun::WARNING);
        if (!$isListed || $document->getElementsByTagName('phpt')->count() > 0) {
            throw RunnerException::notListed($output);
        }

        return $document;
    }

    /** @return array<string, true> */
    private static function idsOf(\DOMDocument $listed, string $group): array
    {
        $ids = [];
        foreach ($listed->getElementsByTagName('group') as $element) {
            if ($element->getAttribute('name') === $group) {
                foreach ($element->getElementsByTagName('test') as $test) {
                    $ids[$test->getAttribute('id')] = true;
                }
            }
        }

        return $ids;
    }

    private static function relative(string $file): string
    {
        return str_starts_with($file, getcwd() . '/') ? substr($file, \strlen((string) getcwd()) + 1) : $file;
    }
}
