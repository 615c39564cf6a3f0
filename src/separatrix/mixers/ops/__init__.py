"""Operations that several mixers share."""
