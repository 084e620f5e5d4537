<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Aircraft;

use Aircraft\AnnouncedChange;
use Aircraft\Change;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;

final class AnnouncedChangeTest extends TestCase
{
    public function testWhatIsToldIsUnderstood(): void
    {
        $some = [
            new AnnouncedChange(Change::Added, 'D-AIMA'),
            new AnnouncedChange(Change::Updated, 'D-AIMA'),
            new AnnouncedChange(Change::Deleted, '7'),
        ];

        self::assertSame('[["added","D-AIMA"],["updated","D-AIMA"],["deleted","7"]]', AnnouncedChange::payload($some));
        self::assertEquals($some, AnnouncedChange::all(AnnouncedChange::payload($some)));
    }

    #[TestWith([''])]
    #[TestWith(['{'])]
    #[TestWith(['7'])]
    #[TestWith(['["added"]'])]
    #[TestWith(['[["painted","D-AIMA"]]'])]
    #[TestWith(['[["added",7]]'])]
    #[TestWith(['[[]]'])]
    public function testWhatIsNotUnderstoodIsNull(string $payload): void
    {
        self::assertSame([null], AnnouncedChange::all($payload));
    }

    public function testWhatIsUnderstoodIsNotLostBesideWhatIsNot(): void
    {
        self::assertEquals(
            [null, new AnnouncedChange(Change::Added, '7')],
            AnnouncedChange::all('{"x":null,"y":["added","7","more"]}'),
        );
    }

    public function testAsManyAsAreToldTogetherFitIntoANotification(): void
    {
        $max = (new \ReflectionClassConstant(\Aircraft\PostgresAnnouncements::class, 'MAX_CHANGES'))->getValue();
        self::assertIsInt($max);

        self::assertLessThan(
            8_000,
            \strlen(AnnouncedChange::payload(
                array_fill(0, $max, new AnnouncedChange(Change::Updated, 'ABCDEFGHIJKLMNOP')),
            )),
        );
    }
}
