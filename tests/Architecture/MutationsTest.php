<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\Runner\Mutation;

/** Checks that tools/mutations can run all mutations. */
final class MutationsTest extends TestCase
{
    private const CAPABILITIES = ['command', 'worker', 'postgres', 'http', 'remote', 'cli'];

    #[DataProvider('mutations')]
    public function testAMutationAppliesAndNamesItsTests(Mutation $mutation): void
    {
        self::assertNotSame('', $mutation->breaks);
        self::assertNotSame([], $mutation->tests);
        foreach ($mutation->tests as $file) {
            self::assertFileExists($file);
        }
        self::assertTrue($mutation->applies(), 'The code has changed, write the patch anew');
    }

    public function testEveryCapabilityHasMutations(): void
    {
        $mutations = Mutation::all();
        self::assertGreaterThanOrEqual(40, \count($mutations));
        foreach (self::CAPABILITIES as $capability) {
            $own = preg_grep("/^{$capability}-/", array_keys($mutations));
            self::assertGreaterThanOrEqual(5, \count((array) $own), $capability);
        }
    }

    /** @return iterable<string, array{Mutation}> */
    public static function mutations(): iterable
    {
        foreach (Mutation::all() as $name => $mutation) {
            yield $name => [$mutation];
        }
    }
}
